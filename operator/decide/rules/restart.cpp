#include "decide/rules/restart.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/annotations.h"
#include "decide/back_off.h"
#include "decide/conditions.h"
#include "decide/objects/names.h"
#include "decide/rules/finish.h"
#include "decide/rules/limits.h"
#include "decide/rules/progress.h"
#include "decide/rules/stall.h"

namespace trainyard::decide {
namespace {

using namespace std::chrono_literals;

constexpr int kDeviceFault = 140;  // exit code: this node's accelerator failed (docs/interfaces.md)
constexpr size_t kMaxAvoided = 16;
constexpr auto kGotOn = 10min;    // of running, after which the back-off begins anew

/// Training got on since the last restart: a newer checkpoint is there, or it ran for long.
bool has_got_on(const Draft& draft) {
  if (has_newer_checkpoint(draft)) return true;
  const api::Condition* const running = find_condition(draft.status, condition::kRunning);
  return running && running->status && draft.now - running->transitioned >= kGotOn;
}

/// "exited with code 1 (Error): the last line", "failed: container logs exited …" or "is lost (NodeLost): …".
std::string described(const api::RestartCause& cause) {
  const bool is_other = !cause.container.empty() && cause.container != api::kContainerName;
  const std::string who = is_other ? fmt::format("failed: container {} ", cause.container) : "";
  const std::string what = cause.exit_code
                               ? fmt::format("{}exited with code {} ({})", who, *cause.exit_code, cause.reason)
                               : fmt::format("is lost ({})", cause.reason);
  return cause.message.empty() ? what : fmt::format("{}: {}", what, cause.message);
}

/// "1 Worker replica(s) failed", counted over the gang as the reference counts, but for the victims of a gang's loss.
std::string failed_of(api::ReplicaType type, const Draft& draft) {
  int failed = 0;
  for (const Replica& replica : draft.gang.replicas) {
    if (replica.type != type || !replica.pod) continue;
    if (draft.scope == RestartScope::Gang && is_consequence(*replica.pod)) continue;
    const bool is_leaving = is_running(*replica.pod) && replica.pod->deleted;
    failed += has_failed(*replica.pod) || is_leaving;
  }
  return fmt::format("{} {} replica(s) failed", std::max(failed, 1), api::name_of(type));
}

void begin_generation(Plan& plan, const Draft& draft) {
  api::JobStatus& status = *plan.status;
  api::Restarts& restarts = status.restarts;
  ++restarts.generation;
  restarts.formed = 0;
  restarts.finished.clear();
  restarts.running_since.reset();
  restarts.checkpoint_step = newest_checkpoint(draft);
  status.progress = without_generation(std::move(status.progress));
  const bool waits = waits_for_back_off(restarts, draft.now);
  for (const Replica& replica : draft.gang.replicas)
    if (replica.pod && !(waits && has_failed(*replica.pod))) plan.remove(*replica.pod, draft.now);
}

void spend_budget(api::Restarts& restarts, const Draft& draft, std::chrono::milliseconds first_wait) {
  if (has_got_on(draft)) restarts.streak = 0;
  if (has_newer_checkpoint(draft)) restarts.forgiven = restarts.count;
  ++restarts.count;
  ++restarts.streak;
  const auto wait = back_off(restarts.streak, first_wait);
  restarts.not_before = wait > 0ms ? std::optional(draft.now + wait) : std::nullopt;
}

void avoid(std::vector<std::string>& nodes, const std::string& node) {
  if (node.empty() || std::ranges::find(nodes, node) != nodes.end()) return;
  if (nodes.size() == kMaxAvoided) nodes.erase(nodes.begin());
  nodes.push_back(node);
}

void announce_restart(Plan& plan, const std::string& message, TimePoint now) {
  set_condition(*plan.status, condition::kRestarting, true, reason::kRestarting, message, now);
  plan.say(true, reason::kRestarting, message);
}

void announce_gang_restart(Plan& plan, const Draft& draft, const std::string& why) {
  const api::Restarts& restarts = plan.status->restarts;
  std::string message =
      fmt::format("PyTorchJob {} is restarting because {}; the whole gang starts anew as generation {}",
                  draft.job().name, why, restarts.generation);
  if (waits_for_back_off(restarts, draft.now)) {
    const auto wait = std::chrono::ceil<std::chrono::seconds>(*restarts.not_before - draft.now);
    message += fmt::format(" in {}", human_duration(wait));
  }
  announce_restart(plan, message, draft.now);
}

std::string why_of(const Loss& loss, const Draft& draft) {
  if (loss.cause.reason == kStalled) return fmt::format("it has stalled: {}", loss.cause.message);
  const std::string what = fmt::format("{} {}", loss.replica->name, described(loss.cause));
  return loss.is_disruption ? "pod " + what : fmt::format("{}: {}", failed_of(loss.replica->type, draft), what);
}

Failure failure_under_never(const Replica& replica, const Draft& draft, api::RestartCause cause) {
  return {fmt::format("PyTorchJob {} is failed because {}.", draft.job().name, failed_of(replica.type, draft)), false,
          std::move(cause)};
}

/// The job fails by that loss, under its own restart policy and budget. None: the failure is repeated.
std::optional<Failure> failure_by(const Loss& loss, const Draft& draft) {
  const std::string& policy = loss.replica->spec->restart_policy;
  if (policy == "Never") return failure_under_never(*loss.replica, draft, loss.cause);
  if (!is_retryable(policy, loss.exit_code))
    return Failure{fmt::format("job \"{}\" is failing because \"{}\" replica(s) failed.", draft.job().name,
                               api::name_of(loss.replica->type)),
                   true, loss.cause};
  if (is_budget_spent(draft)) return Failure{back_off_limit_message(draft.job()), false, loss.cause};
  return std::nullopt;
}

/// A gang whose size has changed under it: its ranks know another WORLD_SIZE. Of an elastic job the program is taken to
/// form its world anew by itself, as torchrun does, unless the job's own annotation asks for the gang.
bool is_resized(const Draft& draft) {
  const api::Job& job = draft.job();
  const bool is_elastic = job.spec.elastic.has_value();
  if (is_elastic && annotation_of(job, api::kRestartScopeAnnotation) != "gang") return false;
  const int64_t replicas = total_replicas(job);
  const std::string size = fmt::format("{}", is_elastic ? replicas * processes_per_replica(job) : replicas);
  return std::ranges::any_of(draft.gang.replicas, [&](const Replica& replica) {
    if (!replica.pod || !is_current(*replica.pod, draft.status)) return false;
    const std::string& known = is_elastic ? replica.pod->world_size : replica.pod->nnodes;
    return !known.empty() && known != size;
  });
}

Plan restart_for(const Draft&, const AwaitedCause&) {
  return {};
}

Plan restart_for(const Draft& draft, const Loss& loss) {
  const auto failure_of_job = loss.is_disruption ? std::nullopt : failure_by(loss, draft);
  if (failure_of_job) return failure(draft, *failure_of_job);
  Plan plan = draft.with_status();
  api::Restarts& restarts = plan.status->restarts;
  note_cause(restarts, loss.cause);
  if (loss.is_disruption)
    ++restarts.disruptions;
  else
    spend_budget(restarts, draft, kFirstWait);
  if (loss.exit_code == kDeviceFault) avoid(restarts.avoid_nodes, loss.cause.node);
  begin_generation(plan, draft);
  announce_gang_restart(plan, draft, why_of(loss, draft));
  return plan;
}

Plan restart_for(const Draft& draft, const Resized&) {
  Plan plan = draft.with_status();
  begin_generation(plan, draft);
  announce_gang_restart(plan, draft, fmt::format("it has {} replicas now", total_replicas(draft.job())));
  return plan;
}

// ------------------------------------------------------------------------------------------------ replica scope

bool is_counted(const Draft& draft, const api::Pod& pod) {
  const auto& uids = draft.status.restarts.restarting_pods;
  return std::ranges::find(uids, pod.uid) != uids.end();
}

Plan removal_of(const api::Pod& pod, const Draft& draft) {
  Plan plan;
  plan.remove(pod, draft.now);
  return plan;
}

/// The node of a running replica is lost. A pod that is asked to end there hangs in Terminating, and convergence() ends
/// it by force. Nothing that its kubelet says of it later counts.
Plan replacement_of_lost(const Draft& draft, const Replica& replica) {
  const api::Pod& pod = *replica.pod;
  if (is_counted(draft, pod)) return removal_of(pod, draft);  // an operator before this one went before it deleted it
  const api::RestartCause cause = cause_by_lost_node(pod, draft);
  if (replica.spec->restart_policy == "Never") return failure(draft, failure_under_never(replica, draft, cause));
  Plan plan = draft.with_status();
  api::Restarts& restarts = plan.status->restarts;
  note_cause(restarts, cause);
  ++restarts.disruptions;
  restarts.restarting_pods.push_back(pod.uid);
  announce_restart(
      plan, fmt::format("PyTorchJob {} is restarting because pod {} {}.", draft.job().name, pod.name, described(cause)),
      draft.now);
  plan.remove(pod, draft.now);
  return plan;
}

Plan restart_of_failed(const Draft& draft, const Replica& replica) {
  const Loss loss = loss_of_failed(replica, draft.now);
  if (const auto failure_of_job = failure_by(loss, draft)) return failure(draft, *failure_of_job);
  Plan plan = draft.with_status();
  api::Restarts& restarts = plan.status->restarts;
  note_cause(restarts, loss.cause);
  spend_budget(restarts, draft, 100ms);
  restarts.restarting_pods.push_back(replica.pod->uid);
  announce_restart(
      plan,
      fmt::format("job {} is restarting because {} replica(s) failed.", draft.job().name, api::name_of(replica.type)),
      draft.now);
  plan.say(true, reason::kRestarting,
           fmt::format("PyTorchJob {} is restarting because {}.", draft.job().name, failed_of(replica.type, draft)));
  if (!waits_for_back_off(restarts, draft.now)) plan.remove(*replica.pod, draft.now);
  return plan;
}

Plan restart_of_leaving(const Draft& draft, const Replica& replica) {
  const std::string message =
      fmt::format("PyTorchJob {} is restarting because {}.", draft.job().name, failed_of(replica.type, draft));
  Plan plan = draft.with_status();
  set_condition(*plan.status, condition::kRestarting, true, reason::kRestarting, message, draft.now);
  plan.say(true, reason::kRestarting, message, "leaving " + replica.pod->uid);
  return plan;
}

}  // namespace

bool waits_for_back_off(const api::Restarts& restarts, TimePoint now) {
  return restarts.not_before && *restarts.not_before > now;
}

Timely<GangBreak> gang_break(const Draft& draft) {
  if (auto loss = loss_in_gang(draft)) {
    if (const auto until = cause_may_come_until(*loss, draft)) return {AwaitedCause(), until};
    auto behind = silent_behind(*loss, draft);
    return {behind ? std::move(*behind) : std::move(*loss)};
  }
  Timely<Loss> stalled = stall(draft);
  if (stalled.found) return {std::move(*stalled.found)};
  if (is_resized(draft)) return {Resized(), stalled.look_again};
  return {.look_again = stalled.look_again};
}

Plan gang_restart(const Draft& draft, const GangBreak& why) {
  return std::visit([&draft](const auto& one) { return restart_for(draft, one); }, why);
}

Plan refused_restart(const Draft& draft, const Refusal& refusal) {
  Plan plan = draft.with_status();
  api::Restarts& restarts = plan.status->restarts;
  restarts.generation = refusal.generation;
  note_cause(restarts, refusal.cause);
  ++restarts.disruptions;
  begin_generation(plan, draft);
  announce_gang_restart(plan, draft, fmt::format("pod {} {}", refusal.cause.pod, described(refusal.cause)));
  return plan;
}

Plan forgotten_pods(const Draft& draft) {
  std::set<std::string> there;
  for (const api::Pod* pod : draft.seen.pods) there.insert(pod->uid);
  Plan plan = draft.with_status();
  std::erase_if(plan.status->restarts.restarting_pods, [&](const std::string& uid) { return !there.contains(uid); });
  return plan;
}

Plan replica_restart(const Draft& draft, const Replica& replica) {
  if (!replica.pod) return {};
  const api::Pod& pod = *replica.pod;
  const bool is_never_repeated = replica.spec->restart_policy == "Never";
  if (has_failed(pod) && is_never_repeated)
    return failure(draft, failure_under_never(replica, draft, cause_of_failure(pod, draft.now)));
  if (has_failed(pod) && !is_counted(draft, pod) && !pod.deleted) return restart_of_failed(draft, replica);
  if (has_failed(pod) && is_counted(draft, pod))
    return waits_for_back_off(draft.status.restarts, draft.now) ? Plan() : removal_of(pod, draft);
  if (!has_ended(pod) && is_on_lost_node(pod, draft)) return replacement_of_lost(draft, replica);
  if (is_running(pod) && pod.deleted && !is_counted(draft, pod) && !is_never_repeated)
    return restart_of_leaving(draft, replica);
  return {};
}

}  // namespace trainyard::decide
