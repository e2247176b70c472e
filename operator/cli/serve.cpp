#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <tuple>

#include "base/text.h"
#include "cli/command.h"
#include "cli/settings.h"
#include "cli/values.h"
#include "decide/objects/init_container.h"
#include "local/manifest/refusal.h"
#include "local/manifest/yaml.h"
#include "serve/operator.h"

namespace trainyard::cli {
namespace {

/// The flags as they come from the command line; what is checked or converted becomes serve::Options.
struct Flags {
  serve::Options options;
  std::string init_template_file, gang_scheduler = "none", log_level = "info";
  int64_t node_lost_grace_milliseconds = 60'000;
  int controller_threads = 0;
  std::vector<std::string> ignored;
};

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf()))
    throw local::Refusal(fmt::format("--pytorch-init-container-template-file: {} cannot be read", path));
  return text.str();
}

/// The reference's template is text with three places to fill in; the master's is filled in for each job.
Json init_template(const std::string& path, const decide::Settings& settings) {
  std::string text = read_file(path);
  replace_all(text, "{{.MasterAddr}}", decide::kMasterPlaceholder);
  replace_all(text, "{{.InitContainerImage}}", settings.init_image);
  replace_all(text, "{{.MaxTries}}", fmt::format("{}", settings.init_max_tries));
  const auto documents = local::read_yaml(text, path);
  if (documents.size() != 1 || !documents.front().content.is_array())
    throw local::Refusal(fmt::format("{}: a list of containers belongs here, as under initContainers", path));
  return documents.front().content;
}

decide::GangScheduler gang_scheduler_of(const std::string& name) {
  if (name.empty() || name == "none") return decide::GangScheduler::None;
  return name == "volcano" ? decide::GangScheduler::Volcano : decide::GangScheduler::SchedulerPlugins;
}

/// Two leaders at once would be the rule otherwise.
void check_election(const serve::Options& options) {
  const auto [lease, renew, retry] = std::tie(options.lease_duration, options.renew_deadline, options.retry_period);
  if (retry > std::chrono::milliseconds(0) && retry < renew && renew < lease) return;
  throw local::Refusal(
      fmt::format("--leader-elect-retry-period ({} ms) must be less than --leader-elect-renew-deadline ({} ms), and "
                  "that less than --leader-elect-lease-duration ({} ms)",
                  retry.count(), renew.count(), lease.count()));
}

serve::Options options_of(Flags flags) {
  check_election(flags.options);
  decide::Settings& decisions = flags.options.decisions;
  decisions.gang_scheduler = gang_scheduler_of(flags.gang_scheduler);
  decisions.gang_scheduler_name = flags.gang_scheduler;
  decisions.node_lost_grace =
      std::chrono::ceil<std::chrono::seconds>(std::chrono::milliseconds(flags.node_lost_grace_milliseconds));
  if (!flags.init_template_file.empty()) decisions.init_template = init_template(flags.init_template_file, decisions);
  return std::move(flags.options);
}

void add_duration(CLI::App& command, const char* name, std::chrono::milliseconds& value, const char* description) {
  const auto set = [&value](const int64_t& milliseconds) { value = std::chrono::milliseconds(milliseconds); };
  command.add_option_function<int64_t>(name, set, description)
      ->transform(duration())
      ->option_text(fmt::format("TIME ({}s)", value.count() / 1000));
}

void add_election_flags(CLI::App& command, serve::Options& options) {
  command.add_flag("--leader-elect", options.leader_elect, "Of several replicas one decides, by a Lease.");
  command.add_option("--leader-election-id", options.leader_election_id, "The Lease's name.")
      ->check(object_name(NameForm::Subdomain));
  add_duration(command, "--leader-elect-lease-duration", options.lease_duration,
               "Others take the lead when the lease has not been renewed for so long.");
  add_duration(command, "--leader-elect-renew-deadline", options.renew_deadline,
               "A leader that could not renew it for so long stops by itself; less than the lease's duration.");
  add_duration(command, "--leader-elect-retry-period", options.retry_period, "Between renewals.");
}

void add_watch_flags(CLI::App& command, Flags& flags) {
  serve::Options& options = flags.options;
  command.add_option(
      "--kubeconfig", options.kubeconfig,
      "How to reach the API. Without it: $KUBECONFIG, else the pod's own identity, else ~/.kube/config.");
  command.add_option("--context", options.context, "Of the kubeconfig; without it its current one.");
  command
      .add_option(
          "--namespace", options.ns,
          "Watch this namespace alone; needs no cluster role. Lost nodes and gangs that can never fit are then\n"
          "not recognised.")
      ->envname("KUBEFLOW_NAMESPACE")
      ->check(object_name(NameForm::Label, /*may_be_empty=*/true));
  command
      .add_option("--kube-api-qps", options.kube_api_qps,
                  "At most so many requests a second; 0: as many as the server answers well.")
      ->check(number_from(0));
  command.add_option("--kube-api-burst", options.kube_api_burst, "So many at once before that limit holds.")
      ->check(number_from(0));
}

void add_decision_flags(CLI::App& command, Flags& flags) {
  decide::Settings& decisions = flags.options.decisions;
  add_restart_scope(command, decisions);
  command
      .add_option("--node-lost-grace", flags.node_lost_grace_milliseconds,
                  "A node that is not ready for so long is lost, and its gangs restart elsewhere.")
      ->transform(duration())
      ->option_text("TIME (60s)");
  command
      .add_option("--node-fault-conditions", decisions.node_faults,
                  "Conditions of a node that, where True, drive gangs off it.")
      ->delimiter(',')
      ->take_all()
      ->capture_default_str();
  command.add_option(
      "--gang-scheduler-name", flags.gang_scheduler,
      "none, volcano, or the name of a scheduler of scheduler-plugins: a PodGroup is made for each job.");
  command.add_option("--pytorch-init-container-image", decisions.init_image,
                     "Of the container in which workers wait for their master's name.");
  command.add_option("--pytorch-init-container-max-tries", decisions.init_max_tries, "Two seconds apart.")
      ->check(whole_number(1));
  command.add_option("--pytorch-init-container-template-file", flags.init_template_file,
                     "YAML of the init containers in its place, with {{.MasterAddr}}.");
  command.add_flag("!--no-pytorch-init-container", decisions.init_container,
                   "No init container: for images that wait by themselves, as trainyard does. A job's annotation\n"
                   "trainyard.dev/init-container wins.");
}

void add_server_flags(CLI::App& command, Flags& flags) {
  serve::Options& options = flags.options;
  command.add_option("--metrics-bind-address", options.metrics_address, "Prometheus' /metrics; 0: none.")
      ->capture_default_str();
  command.add_option("--health-probe-bind-address", options.health_address, "/healthz and /readyz; 0: none.")
      ->capture_default_str();
  command.add_option("--webhook-server-port", options.webhook_port, "Of the validating webhook; 0: none.")
      ->check(whole_number(0, 65535))
      ->capture_default_str();
  command.add_option("--webhook-service-name", options.webhook_service, "The Service in front of it.")
      ->check(object_name(NameForm::Label))
      ->capture_default_str();
  command.add_option("--webhook-secret-name", options.webhook_secret, "Where its certificates are kept.")
      ->check(object_name(NameForm::Subdomain))
      ->capture_default_str();
  command.add_option("--token-secret-name", options.token_secret, "Where the key of jobs' tokens is kept.")
      ->check(object_name(NameForm::Subdomain))
      ->capture_default_str();
  command
      .add_option("--progress-url", options.decisions.progress_url,
                  "Where jobs post their progress, if not at the webhook's service.")
      ->check(web_address());
  command.add_option("--zap-log-level,--log-level", flags.log_level, "debug, info, warn or error.")
      ->check(one_of({"debug", "info", "warn", "error"}));
}

/// Flags of the reference that have no meaning here are taken, so that an old Deployment goes on working.
void add_old_flags(CLI::App& command, Flags& flags) {
  command
      .add_option("--controller-threads", flags.controller_threads,
                  "Taken for compatibility: one thread decides for all jobs.")
      ->check(whole_number(0));
  command.add_option("--enable-scheme", flags.ignored, "Taken for compatibility: PyTorchJobs are all there is.")
      ->take_all();
  for (const char* name : {"--zap-devel", "--zap-encoder", "--zap-stacktrace-level", "--zap-time-encoding"})
    command.add_option(name, flags.ignored)->group("")->expected(0, 1)->take_all();
}

void run(const Flags& flags) {
  // One line a happening, to stderr; what the operator runs says itself.
  const char* const no_color = std::getenv("NO_COLOR");
  spdlog::set_default_logger(spdlog::stderr_color_st(
      "operator", no_color && *no_color ? spdlog::color_mode::never : spdlog::color_mode::automatic));
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %^%l%$ %v", spdlog::pattern_time_type::utc);
  spdlog::set_level(spdlog::level::from_str(flags.log_level));
  serve::Operator(options_of(flags)).run();
}

}  // namespace

void add_serve(CLI::App& program, int& exit_code) {
  CLI::App* const command = program.add_subcommand(
      "serve", "Run the PyTorchJobs of a cluster. This is what happens without a subcommand, too.");
  const auto flags = std::make_shared<Flags>();
  // Who patches a Deployment appends: the last of two holds, as with the reference.
  command->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_watch_flags(*command, *flags);
  add_election_flags(*command, flags->options);
  add_decision_flags(*command, *flags);
  add_server_flags(*command, *flags);
  add_old_flags(*command, *flags);
  command->callback([flags, &exit_code] {
    run(*flags);
    exit_code = 0;
  });
}

}  // namespace trainyard::cli
