#include "serve/operator.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <map>
#include <random>

#include "decide/conditions.h"
#include "decide/objects/names.h"
#include "http/listener.h"
#include "webhook/admission.h"
#include "webhook/certificate.h"

namespace trainyard::serve {
namespace {

using namespace std::chrono_literals;

constexpr auto kTick = 5s;
constexpr const char* kLease = "the leader's lease";
constexpr const char* kServiceAccountNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

std::string host_name() {
  char name[256] = "";
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

bool is_in_cluster() {
  return std::getenv("KUBERNETES_SERVICE_HOST") && ::access(kServiceAccountNamespace, R_OK) == 0;
}

/// Where the operator's own objects are: its lease and its certificates.
std::string own_namespace(const kube::Config& config) {
  if (const char* const given = std::getenv("MY_POD_NAMESPACE")) return given;
  std::string ns;
  if (std::ifstream file(kServiceAccountNamespace); is_in_cluster() && file >> ns) return ns;
  return config.ns;
}

/// What TLS could never work with is said now rather than at each of its attempts. Throws kube::ConfigError.
kube::Config with_usable_certificates(kube::Config config) {
  const kube::Identity& identity = config.identity;
  if (!config.endpoint.ca_pem.empty() && !webhook::facts_of(config.endpoint.ca_pem))
    throw kube::ConfigError(config.origin + ": the certificate authority is no certificate; it should be PEM");
  if (!identity.certificate_pem.empty() && !webhook::fits({identity.certificate_pem, identity.key_pem}))
    throw kube::ConfigError(config.origin + ": the client certificate and its key are no pair; both should be PEM");
  return config;
}

kube::ClientSettings client_settings(const Options& options) {
  kube::ClientSettings settings;
  settings.qps = options.kube_api_qps;
  settings.burst = options.kube_api_burst;
  return settings;
}

kube::ElectionSettings election_settings(const Options& options, const std::string& ns) {
  kube::ElectionSettings settings;
  settings.ns = ns;
  settings.name = options.leader_election_id;
  settings.identity = fmt::format("{}_{:016x}", host_name(), std::random_device{}() * 0x9e3779b97f4a7c15ull);
  settings.lease_duration = options.lease_duration;
  settings.renew_deadline = options.renew_deadline;
  settings.retry_period = options.retry_period;
  return settings;
}

}  // namespace

class Operator::JobCounters final : public controller::Counters {
 public:
  explicit JobCounters(telemetry::Metrics& metrics) : metrics_(metrics) {}
  void count(const std::string& ns, const controller::JobCounts& counts) override {
    metrics_.job(telemetry::JobEvent::Created, ns, counts.created);
    metrics_.job(telemetry::JobEvent::Successful, ns, counts.successful);
    metrics_.job(telemetry::JobEvent::Failed, ns, counts.failed);
    metrics_.job(telemetry::JobEvent::Restarted, ns, counts.restarted);
  }
  void count_deleted(const std::string& ns) override { metrics_.job(telemetry::JobEvent::Deleted, ns); }
  void observe_reconcile(double seconds, bool succeeded) override {
    metrics_.reconciled(succeeded, std::chrono::duration<double>(seconds));
  }

 private:
  telemetry::Metrics& metrics_;
};

Operator::Operator(Options options)
    : options_(std::move(options)),
      config_(with_usable_certificates(
          kube::load_config({options_.kubeconfig, options_.context}, kube::process_surroundings()))),
      own_ns_(own_namespace(config_)),
      complaints_(config_.endpoint.server, config_.origin,
                  options_.ns.empty() ? "manifests/rbac.yaml" : "manifests/rbac-namespaced.yaml"),
      client_(loop_, config_, client_settings(options_)),
      events_(client_, decide::kOperatorName, ""),
      counters_(std::make_unique<JobCounters>(metrics_)),
      key_(OperatorKey::random()),
      progress_(key_, [this](const std::string& ns, const std::string& name, const api::ProgressPost& post) {
        loop_.post([this, key = fmt::format("{}/{}", ns, name), post] { reconciler_->take_post(key, post); });
      }) {
  watch_signals();  // before any thread begins: one that does not block them would be ended by them, and all with it
  http::raise_open_file_limit();
  client_.set_observer([this](const kube::Exchange& one) { observe(one); });
  if (options_.decisions.progress_url.empty() && is_in_cluster() && options_.webhook_port > 0)
    options_.decisions.progress_url = fmt::format("https://{}.{}.svc/progress", options_.webhook_service, own_ns_);
  if (!options_.ns.empty()) {
    options_.decisions.watches_nodes = false;
    spdlog::info(
        "watching namespace {} alone: nodes are not seen, so lost nodes and gangs that can never fit are not "
        "recognised, and the webhook's certificate is not published",
        options_.ns);
  }
  if (options_.metrics_address != "0")
    metrics_server_ = std::make_unique<http::Server>(
        http::listen_on(options_.metrics_address, "--metrics-bind-address"), metrics_handler(metrics_), http::Limits{});
  if (options_.health_address != "0")
    health_server_ =
        std::make_unique<http::Server>(http::listen_on(options_.health_address, "--health-probe-bind-address"),
                                       probe_handler(probes_), http::Limits{});
  probes_.set_ready("caches", false);
  if (options_.webhook_port > 0) {
    webhook_listener_ = http::listen_on(fmt::format(":{}", options_.webhook_port), "--webhook-server-port");
    probes_.set_ready("webhook", false);
  }
  review_ = webhook::admission_handler([this](bool is_allowed, double seconds) {
    metrics_.reviewed(is_allowed, std::chrono::duration<double>(seconds));
  });
  reconciler_ = std::make_unique<controller::Reconciler>(
      client_, events_, *counters_, key_, controller::Reconciler::Settings{options_.decisions, options_.ns},
      controller::Reconciler::Hooks{
          [this](const controller::WatchedJob* before, const controller::WatchedJob* after) {
            follow_job(before, after);
          },
          [this](const std::string& what, const kube::ApiError& error) { trouble(what, error); }});
}

Operator::~Operator() = default;

void Operator::run() {
  const webhook::CertificatePlace place{own_ns_, options_.webhook_secret, options_.token_secret,
                                        options_.ns.empty() ? options_.webhook_configuration : ""};
  certificate_store_ = std::make_unique<webhook::KubeCertificateStore>(client_, place);
  certificates_ = std::make_unique<webhook::CertificateKeeper>(
      *certificate_store_, webhook::CertificateKeeper::Settings{place, options_.webhook_service},
      webhook::CertificateKeeper::Hooks{
          [] { return std::chrono::system_clock::now(); }, [this](const webhook::Material& material) { use(material); },
          [this](std::chrono::milliseconds delay) { loop_.after(delay, [this] { certificates_->check(); }); },
          [this](const std::string& what, const kube::ApiError& error) { trouble(what, error); }});
  if (options_.leader_elect) {
    elector_ = std::make_unique<kube::Elector>(
        client_, election_settings(options_, own_ns_), [this](bool leads) { change_lead(leads); },
        [this](const kube::ApiError& error) { trouble(kLease, error); });
    client_.set_write_guard([this] { return elector_->is_leader(); });
    elector_->start();
  } else {
    has_lease_ = true;
  }
  certificates_->check();
  reconciler_->start();
  tick();
  loop_.run();
}

// --------------------------------------------------------------------------------------------------- who decides

void Operator::change_lead(bool leads) {
  has_lease_ = leads;
  // What the leader before wrote, this one's watches may not have told yet: of a gang whose status says that it is
  // complete, pods would seem to be lost.
  if (leads) reconciler_->cluster().refresh();
  spdlog::info("{}", leads ? "leading" : "no longer leading: another decides, this one follows");
  lead_when_ready();
}

/// Jobs' tokens are derived from the key that all replicas share, so nothing is decided before it is there.
void Operator::lead_when_ready() {
  const bool may = has_lease_ && has_key_ && !is_stopping_;
  if (may == is_leading_) return;
  is_leading_ = may;
  metrics_.leads(may);
  progress_.set_leading(may);
  may ? reconciler_->lead() : reconciler_->yield();
}

void Operator::watch_signals() {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  signals_ = UniqueFd(::signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK));
  loop_.watch(signals_.get(), kube::EventLoop::Readable, [this](unsigned) {
    signalfd_siginfo info;
    if (::read(signals_.get(), &info, sizeof info) == sizeof info) stop();
  });
}

void Operator::stop() {
  if (is_stopping_) return loop_.stop();  // asked twice: at once
  is_stopping_ = true;
  spdlog::info("asked to end: {}", elector_ ? "giving the lease back" : "good-bye");
  lead_when_ready();
  if (!elector_) return loop_.stop();
  elector_->release([this] { loop_.stop(); });
}

// --------------------------------------------------------------------------------------------------- what it serves

/// The webhook and the progress endpoint share a server: both are for the cluster's inside, by one certificate.
http::Response Operator::answer(const http::Request& request) {
  if (request.path == webhook::kPath) return review_(request);
  return progress_handler(progress_)(request);
}

void Operator::use(const webhook::Material& material) {
  has_key_ = true;
  if (key_.bytes != material.token_key || reconciler_->decisions().progress_ca != material.authorities)
    reconciler_->listen_anew();
  key_ = OperatorKey{material.token_key};
  progress_.set_trust(key_, material.authorities);
  reconciler_->decisions().progress_ca = material.authorities;
  if (const auto facts = webhook::facts_of(material.serving.certificate))
    metrics_.certificate_expires(facts->not_after);
  const http::Identity identity{material.serving.certificate, material.serving.key};
  try {
    if (webhook_server_) {
      webhook_server_->set_identity(identity);
    } else if (webhook_listener_.get() >= 0) {
      http::Limits limits;
      limits.body_bytes = webhook::kBodyLimit;
      limits.connections = 16'384;
      limits.threads = 2;
      webhook_server_ = std::make_unique<http::Server>(
          std::move(webhook_listener_), [this](const http::Request& request) { return answer(request); }, limits,
          identity);
    }
    probes_.set_ready("webhook", true);
  } catch (const std::runtime_error& error) {
    spdlog::error("the certificate in Secret {}/{} cannot be used: {}", own_ns_, options_.webhook_secret, error.what());
  }
  lead_when_ready();
}

void Operator::follow_job(const controller::WatchedJob* before, const controller::WatchedJob* after) {
  if (!after || decide::is_finished(after->status)) {
    const api::Job& job = after ? *after : *before;
    progress_.forget(job.ns, job.name);
    return metrics_.forget(job.ns, job.name);
  }
  progress_.track(after->ns, after->name, {after->uid, after->status.restarts.generation}, after->status.progress);
  if (after->status.progress) metrics_.progress(after->ns, after->name, *after->status.progress);
}

void Operator::tick() {
  probes_.beat(telemetry::Probes::Clock::now());
  const bool is_synced = reconciler_->cluster().is_synced();
  probes_.set_ready("caches", is_synced);
  metrics_.queue_depth(reconciler_->queued());
  if (is_synced) report_states();
  loop_.after(is_synced ? std::chrono::milliseconds(kTick) : 50ms, [this] { tick(); });
}

void Operator::report_states() {
  std::map<std::string, size_t> states;
  reconciler_->cluster().for_each_job([&](const controller::WatchedJob& job) {
    ++states[job.status.conditions.empty() ? "None" : job.status.conditions.back().type];
  });
  metrics_.jobs(states);
  metrics_.pods(reconciler_->cluster().pod_count());
}

void Operator::observe(const kube::Exchange& one) {
  auto [verb, resource] = kube::info_of(one.method, one.path);
  if (const auto line = complaints_.answered(one.status)) spdlog::info("{}", *line);
  const bool is_topic = verb == "list" || verb == "watch" || resource == "leases" || resource == "pytorchjobs/status";
  if (is_topic && one.status >= 200 && one.status < 300)
    if (const auto line = complaints_.works(resource == "leases" ? kLease : resource)) spdlog::info("{}", *line);
  metrics_.api_request({std::move(verb), std::move(resource), one.status, one.duration});
}

void Operator::trouble(const std::string& what, const kube::ApiError& error) {
  if (const auto line = complaints_.failed(what, error, kube::EventLoop::now())) spdlog::warn("{}", *line);
}

}  // namespace trainyard::serve
