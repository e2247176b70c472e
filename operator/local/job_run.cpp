#include "local/job_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <stdexcept>

#include "api/quantity.h"
#include "base/job_token.h"
#include "decide/objects/names.h"
#include "decide/rules/limits.h"
#include "local/caller.h"
#include "local/ids.h"
#include "local/manifest/refusal.h"
#include "local/volumes/volume_files.h"

namespace trainyard::local {
namespace {

using namespace std::chrono_literals;

constexpr auto kRestPatience = 30s;  // for pods that still run when the job has succeeded
constexpr int kMaxRounds = 1000;     // of decisions that each change something, without anything having happened

}  // namespace

JobRun::JobRun(api::Job job, Input input, decide::Settings settings, JobPlace place)
    : job_(std::move(job)), input_(std::move(input)), settings_(std::move(settings)), place_(std::move(place)) {
  settings_.progress_url = place_.inbox.url();
  place_.inbox.track(job_);
}

void JobRun::step(TimePoint now) {
  for (auto& [name, pod] : pods_) pod.on_time(now);
  forget_gone_pods();
  if (is_stopping_) return;
  if (auto post = place_.inbox.take(job_)) post_ = std::move(post);
  for (int round = 0;; ++round) {
    const decide::Plan plan = decide::decide(observe(), settings_, now);
    look_again_ = plan.look_again;
    if (!act(plan, now)) break;
    forget_gone_pods();
    if (round == kMaxRounds) throw std::logic_error(fmt::format("job {}: its decisions come to no end", job_.name));
  }
  if (has_finished())
    end_the_rest(now);
  else
    check_is_going_on();
}

decide::Observed JobRun::observe() const {
  decide::Observed seen{.job = job_};
  for (const auto& [name, pod] : pods_) seen.pods.push_back(&pod.seen());
  for (const auto& [name, service] : services_) seen.services.push_back(&service);
  seen.pod_group = pod_group_ ? &*pod_group_ : nullptr;
  seen.autoscaler = autoscaler_ ? &*autoscaler_ : nullptr;
  seen.post = post_;
  seen.token_is_there = token_is_there_;
  seen.network_policy_is_there = network_policy_is_there_;
  return seen;
}

bool JobRun::act(const decide::Plan& plan, TimePoint now) {
  if (plan.status) set_status(*plan.status, plan.events);
  for (const decide::EventText& event : plan.events) say(event);
  for (const decide::Create& wanted : plan.prepare) create(wanted, now);
  for (const decide::Delete& wanted : plan.deletes) remove(wanted, now);
  for (const decide::Create& wanted : plan.creates) create(wanted, now);
  for (const decide::Create& wanted : plan.creates)  // once all of them are known to be possible
    if (const auto pod = pods_.find(wanted.name); wanted.kind == decide::Kind::Pod && pod != pods_.end())
      pod->second.start(now);
  return !plan.writes_nothing() && rest_until_ != TimePoint::min();
}

/// An event of the same words is one event with a count on a cluster; here it is said once a generation.
void JobRun::say(const decide::EventText& event) {
  if (event.reason == "ExitedWithCode") return;  // on_end() has said it
  auto& said = event.once.empty() ? said_ : said_once_;
  if (!said.insert(event.once.empty() ? event.message : event.once).second) return;
  event.is_warning ? place_.console.warning(event.message) : place_.console.notice(event.message);
}

void JobRun::set_status(const api::JobStatus& status, const std::vector<decide::EventText>& events) {
  std::set<std::string> said;
  for (const decide::EventText& event : events) said.insert(event.message);
  for (const api::Condition& condition : job_.status.conditions) said.insert(condition.message);
  for (const api::Condition& condition : status.conditions)
    if (condition.status && said.insert(condition.message).second) place_.console.notice(condition.message);
  job_.status = status;
  place_.inbox.track(job_);
  write_status();
}

void JobRun::write_status() const {
  const Json object{{"apiVersion", api::kApiVersion},
                    {"kind", api::kKind},
                    {"metadata", {{"name", job_.name}, {"namespace", job_.ns}, {"uid", job_.uid}}},
                    {"status", api::to_json(job_.status)}};
  const auto file = place_.folder / "status.yaml", next = place_.folder / "status.yaml.next";
  write_volume_file(next, to_yaml(object), 0644);
  std::filesystem::rename(next, file);
}

void JobRun::create(const decide::Create& wanted, TimePoint now) {
  switch (wanted.kind) {
    case decide::Kind::Pod:
      return create_pod(wanted, now);
    case decide::Kind::Secret:
      return prepare_token(wanted);
    case decide::Kind::NetworkPolicy:
      network_policy_is_there_ = true;
      return;
    case decide::Kind::Service: {
      api::Service service{api::parse_service(wanted.object)};
      service.uid = random_uid();
      services_.insert_or_assign(wanted.name, std::move(service));
      return;
    }
    case decide::Kind::PodGroup:
      pod_group_ = api::parse_pod_group(wanted.object);
      return;
    case decide::Kind::Autoscaler:
      autoscaler_ = api::parse_autoscaler(wanted.object);
      place_.console.warning("elasticPolicy.metrics: nothing scales the job here, it keeps its number of workers");
      return;
    case decide::Kind::Job:
      return;
  }
}

void JobRun::create_pod(const decide::Create& wanted, TimePoint now) {
  Json object = wanted.object;
  object["metadata"]["uid"] = random_uid();
  object["metadata"]["namespace"] = job_.ns;
  const PodContext context{.job = job_, .pod = object, .input = input_, .node = machine_name()};
  failure_.reset();  // of a generation that is gone
  said_.clear();
  const PodPlace place = place_for(object);
  const auto [pod, is_new] = pods_.try_emplace(wanted.name, object, context, place, now);
  if (!is_new) throw std::logic_error("pod " + wanted.name + " is still there");
}

PodPlace JobRun::place_for(const Json& pod) {
  Variables variables = gpu_variables(pod);
  variables["HOSTNAME"] = text_at(pod, "/metadata/name");
  // The trainer draws its bar where somebody sees it: our terminal, though what it writes to is a pipe.
  if (const size_t columns = place_.console.columns(); columns > 0)
    variables["TRAINYARD_TERMINAL_COLUMNS"] = fmt::format("{}", columns);
  if (!std::getenv("OMP_NUM_THREADS")) {  // else each of them would take all cores for itself
    const int ranks = std::max(1, decide::total_replicas(job_) * decide::processes_per_replica(job_));
    variables["OMP_NUM_THREADS"] = fmt::format("{}", std::max<long>(1, ::sysconf(_SC_NPROCESSORS_ONLN) / ranks));
  }
  return {.run_folder = place_.folder,
          .variables = std::move(variables),
          .colour = next_colour_++,
          .console = place_.console};
}

Variables JobRun::gpu_variables(const Json& pod) {
  const std::string name = text_at(pod, "/metadata/name");
  double wanted = 0;
  for (const Json& container : pod.at("spec").at("containers"))
    if (const Json* const gpus = find(container, "/resources/limits/nvidia.com~1gpu"))
      wanted += api::Quantity::parse_json(*gpus).value_or(api::Quantity()).value();
  if (wanted < 1) return {};
  if (place_.gpus.count() == 0) {
    place_.console.warning(
        fmt::format("pod {} asks for {:.0f} nvidia.com/gpu, and this machine has none: it runs without", name, wanted));
    return {};
  }
  const std::vector<std::string> taken = place_.gpus.take(static_cast<size_t>(wanted));
  gpus_of_[name] = taken;
  if (static_cast<double>(taken.size()) < wanted || place_.gpus.are_shared())
    place_.console.warning(fmt::format("pod {} asks for {:.0f} nvidia.com/gpu; with {} in all, pods share them", name,
                                       wanted, place_.gpus.count()));
  return {{"CUDA_VISIBLE_DEVICES", fmt::format("{}", fmt::join(taken, ","))}};
}

void JobRun::remove(const decide::Delete& wanted, TimePoint now) {
  switch (wanted.kind) {
    case decide::Kind::Pod: {
      const auto pod = pods_.find(wanted.name);
      if (pod == pods_.end()) return;
      pod->second.remove(wanted.grace_seconds ? std::chrono::seconds(*wanted.grace_seconds) : pod->second.grace(), now);
      if (!wanted.event_message.empty()) place_.console.notice(wanted.event_message);
      return;
    }
    case decide::Kind::Service:
      services_.erase(wanted.name);
      return;
    case decide::Kind::PodGroup:
      pod_group_.reset();
      return;
    case decide::Kind::Autoscaler:
      autoscaler_.reset();
      return;
    case decide::Kind::Secret:
      token_is_there_ = false;
      return;
    case decide::Kind::NetworkPolicy:
      network_policy_is_there_ = false;
      return;
    case decide::Kind::Job:
      rest_until_ = TimePoint::min();
      return;  // ttlSecondsAfterFinished: at once
  }
}

void JobRun::prepare_token(const decide::Create& wanted) {
  Entries entries{{"token", job_token(place_.inbox.key(), job_.ns, job_.name, job_.uid)}};
  const Json others = wanted.object.value("stringData", Json::object());
  for (const auto& [key, value] : others.items()) entries[key] = value;
  input_.secrets[job_.ns + "/" + wanted.name] = std::move(entries);
  token_is_there_ = true;
}

void JobRun::on_end(PodRun& pod, Container& container, int status, TimePoint now) {
  const int code = pod.on_end(container, status, now);
  if (container.is_sidecar() && (container.is_running() || container.restart_at()))
    place_.console.warning(fmt::format("{} has ended; as a sidecar it is started again", container.label()));
  if (container.is_sidecar() || code == 0 || pod.seen().deleted) return;
  if (!failure_ || failure_->label == container.label()) failure_ = {container.label(), code};
  place_.console.warning(fmt::format("{} ended with exit code {}", container.label(), code));
}

void JobRun::forget_gone_pods() {
  for (auto pod = pods_.begin(); pod != pods_.end();) {
    if (!pod->second.is_gone()) {
      ++pod;
      continue;
    }
    if (const auto gpus = gpus_of_.extract(pod->first)) place_.gpus.give_back(gpus.mapped());
    pod = pods_.erase(pod);
  }
}

/// A cluster would keep pods that cleanPodPolicy keeps; here they end with the run.
void JobRun::end_the_rest(TimePoint now) {
  if (!rest_until_) rest_until_ = decide::is_true(job_.status, decide::condition::kFailed) ? now : now + kRestPatience;
  if (*rest_until_ > now) return;
  for (auto& [name, pod] : pods_) {
    if (!pod.is_alive() || pod.seen().deleted) continue;
    place_.console.notice(fmt::format("stopping pod {}: the job is over", name));
    pod.remove(pod.grace(), now);
  }
}

void JobRun::check_is_going_on() const {
  if (is_any_alive() || look_again_) return;
  throw Refusal(
      fmt::format("job {}: nothing of it runs, and nothing is left to do: {}", job_.name,
                  job_.status.conditions.empty() ? "it has no status" : job_.status.conditions.back().message));
}

void JobRun::stop(TimePoint now) {
  is_stopping_ = true;
  for (auto& [name, pod] : pods_) pod.remove(std::min<std::chrono::seconds>(pod.grace(), 5min), now);
}

void JobRun::kill() {
  for (auto& [name, pod] : pods_) pod.kill();
}

bool JobRun::is_any_alive() const {
  return std::ranges::any_of(pods_, [](const auto& entry) { return entry.second.is_alive(); });
}

bool JobRun::is_done() const {
  return !is_any_alive() && (is_stopping_ || has_finished());
}

std::optional<TimePoint> JobRun::next_time() const {
  std::optional<TimePoint> next = has_finished() ? rest_until_ : look_again_;
  for (const auto& [name, pod] : pods_)
    if (const auto at = pod.next_time(); at && (!next || *at < *next)) next = at;
  return next;
}

int JobRun::exit_code() const {
  if (decide::is_true(job_.status, decide::condition::kSucceeded)) return 0;
  return failure_ && !decide::ended_by_active_deadline(job_, job_.status) ? failure_->code : 1;
}

}  // namespace trainyard::local
