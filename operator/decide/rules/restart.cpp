#include "decide/rules/restart.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

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

/// The last cause, and the last of the few that the status keeps.
void note_cause(Draft& draft, const api::RestartCause& cause) {
  constexpr size_t kMostCauses = 5;
  auto& causes = draft.status.restarts.causes;
  causes.push_back(cause);
  if (causes.size() > kMostCauses) causes.erase(causes.begin());
  draft.status.restarts.last_cause = cause;
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

void begin_generation(Draft& draft) {
  api::Restarts& restarts = draft.status.restarts;
  ++restarts.generation;
  restarts.formed = 0;
  restarts.finished.clear();
  restarts.running_since.reset();
  restarts.checkpoint_step = newest_checkpoint(draft);
  forget_generation(draft);
  const bool waits = waits_for_back_off(draft);
  for (const Replica& replica : draft.gang.replicas)
    if (replica.pod && !(waits && has_failed(*replica.pod))) draft.remove(*replica.pod);
}

void spend_budget(Draft& draft, std::chrono::milliseconds first_wait) {
  api::Restarts& restarts = draft.status.restarts;
  if (has_got_on(draft)) restarts.streak = 0;
  if (has_newer_checkpoint(draft)) restarts.forgiven = restarts.count;
  ++restarts.count;
  ++restarts.streak;
  const auto wait = back_off(restarts.streak, first_wait);
  restarts.not_before = wait > 0ms ? std::optional(draft.now + wait) : std::nullopt;
}

void avoid(Draft& draft, const std::string& node) {
  auto& nodes = draft.status.restarts.avoid_nodes;
  if (node.empty() || std::ranges::find(nodes, node) != nodes.end()) return;
  if (nodes.size() == kMaxAvoided) nodes.erase(nodes.begin());
  nodes.push_back(node);
}

void announce_restart(Draft& draft, const std::string& message) {
  set_condition(draft.status, condition::kRestarting, true, reason::kRestarting, message, draft.now);
  draft.say(true, reason::kRestarting, message);
}

void announce_gang_restart(Draft& draft, const std::string& why) {
  const api::Restarts& restarts = draft.status.restarts;
  std::string message =
      fmt::format("PyTorchJob {} is restarting because {}; the whole gang starts anew as generation {}",
                  draft.job().name, why, restarts.generation);
  if (restarts.not_before && *restarts.not_before > draft.now) {
    const auto wait = std::chrono::ceil<std::chrono::seconds>(*restarts.not_before - draft.now);
    message += fmt::format(" in {}", human_duration(wait));
  }
  announce_restart(draft, message);
}

std::string why_of(const Loss& loss, const Draft& draft) {
  if (loss.cause.reason == kStalled) return fmt::format("it has stalled: {}", loss.cause.message);
  const std::string what = fmt::format("{} {}", loss.replica->name, described(loss.cause));
  return loss.is_disruption ? "pod " + what : fmt::format("{}: {}", failed_of(loss.replica->type, draft), what);
}

/// How a job ends that has failed.
struct Failure {
  std::string message;
  bool is_warning = false;  ///< the event
};

Failure failure_under_never(const Replica& replica, const Draft& draft) {
  return {fmt::format("PyTorchJob {} is failed because {}.", draft.job().name, failed_of(replica.type, draft))};
}

/// The job fails by that loss, under its own restart policy and budget. None: the failure is repeated.
std::optional<Failure> failure_by(const Loss& loss, const Draft& draft) {
  const std::string& policy = loss.replica->spec->restart_policy;
  if (policy == "Never") return failure_under_never(*loss.replica, draft);
  if (!is_retryable(policy, loss.exit_code))
    return Failure{fmt::format("job \"{}\" is failing because \"{}\" replica(s) failed.", draft.job().name,
                               api::name_of(loss.replica->type)),
                   true};
  if (is_budget_spent(draft)) return Failure{back_off_limit_message(draft.job())};
  return std::nullopt;
}

void end_as(Draft& draft, const Failure& failure) {
  fail(draft, failure.message, failure.is_warning);
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

void act_on(Draft&, const AwaitedCause&) {}

void act_on(Draft& draft, const Loss& loss) {
  note_cause(draft, loss.cause);
  if (loss.is_disruption) {
    ++draft.status.restarts.disruptions;
  } else {
    if (const auto failure = failure_by(loss, draft)) return end_as(draft, *failure);
    spend_budget(draft, kFirstWait);
  }
  if (loss.exit_code == kDeviceFault) avoid(draft, loss.cause.node);
  const std::string why = why_of(loss, draft);
  begin_generation(draft);
  announce_gang_restart(draft, why);
}

void act_on(Draft& draft, const Resized&) {
  begin_generation(draft);
  announce_gang_restart(draft, fmt::format("it has {} replicas now", total_replicas(draft.job())));
}

// ------------------------------------------------------------------------------------------------ replica scope

bool is_counted(const Draft& draft, const api::Pod& pod) {
  const auto& uids = draft.status.restarts.restarting_pods;
  return std::ranges::find(uids, pod.uid) != uids.end();
}

/// Uids of pods that are gone are of no use any more.
void forget_gone(Draft& draft) {
  std::set<std::string> there;
  for (const api::Pod* pod : draft.seen.pods) there.insert(pod->uid);
  std::erase_if(draft.status.restarts.restarting_pods, [&](const std::string& uid) { return !there.contains(uid); });
}

/// The node of a running replica is lost. A pod that is asked to end there hangs in Terminating, and converge() ends it
/// by force. Nothing that its kubelet says of it later counts.
void replace_lost(Draft& draft, const Replica& replica) {
  const api::Pod& pod = *replica.pod;
  if (is_counted(draft, pod)) return draft.remove(pod);  // an operator before this one went before it deleted it
  const api::RestartCause cause = cause_by_lost_node(pod, draft);
  note_cause(draft, cause);
  if (replica.spec->restart_policy == "Never") return end_as(draft, failure_under_never(replica, draft));
  ++draft.status.restarts.disruptions;
  draft.status.restarts.restarting_pods.push_back(pod.uid);
  announce_restart(draft, fmt::format("PyTorchJob {} is restarting because pod {} {}.", draft.job().name, pod.name,
                                      described(cause)));
  draft.remove(pod);
}

void restart_replica(Draft& draft, const Replica& replica) {
  const Loss loss = loss_of_failed(replica, draft.now);
  note_cause(draft, loss.cause);
  if (const auto failure = failure_by(loss, draft)) return end_as(draft, *failure);
  spend_budget(draft, 100ms);
  draft.status.restarts.restarting_pods.push_back(replica.pod->uid);
  announce_restart(draft, fmt::format("job {} is restarting because {} replica(s) failed.", draft.job().name,
                                      api::name_of(replica.type)));
  draft.say(true, reason::kRestarting,
            fmt::format("PyTorchJob {} is restarting because {}.", draft.job().name, failed_of(replica.type, draft)));
  if (!waits_for_back_off(draft)) draft.remove(*replica.pod);
}

void replace_leaving(Draft& draft, const Replica& replica) {
  const std::string message =
      fmt::format("PyTorchJob {} is restarting because {}.", draft.job().name, failed_of(replica.type, draft));
  set_condition(draft.status, condition::kRestarting, true, reason::kRestarting, message, draft.now);
  draft.say_once(true, reason::kRestarting, message, "leaving " + replica.pod->uid);
}

void restart_where_lost(Draft& draft, const Replica& replica) {
  const api::Pod& pod = *replica.pod;
  const bool is_never_repeated = replica.spec->restart_policy == "Never";
  if (has_failed(pod) && is_never_repeated) {
    note_cause(draft, cause_of_failure(pod, draft.now));
    end_as(draft, failure_under_never(replica, draft));
  } else if (has_failed(pod) && !is_counted(draft, pod) && !pod.deleted) {
    restart_replica(draft, replica);
  } else if (has_failed(pod) && is_counted(draft, pod)) {
    if (!waits_for_back_off(draft)) draft.remove(pod);
  } else if (!has_ended(pod) && is_on_lost_node(pod, draft)) {
    replace_lost(draft, replica);
  } else if (is_running(pod) && pod.deleted && !is_counted(draft, pod) && !is_never_repeated) {
    replace_leaving(draft, replica);
  }
}

}  // namespace

bool waits_for_back_off(const Draft& draft) {
  const auto& not_before = draft.status.restarts.not_before;
  return not_before && *not_before > draft.now;
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

void restart_gang(Draft& draft, const GangBreak& why) {
  std::visit([&draft](const auto& one) { act_on(draft, one); }, why);
}

void restart_refused(Draft& draft, const Refusal& refusal) {
  draft.status.restarts.generation = refusal.generation;
  note_cause(draft, refusal.cause);
  ++draft.status.restarts.disruptions;
  begin_generation(draft);
  announce_gang_restart(draft, fmt::format("pod {} {}", refusal.cause.pod, described(refusal.cause)));
}

void restart_replicas(Draft& draft) {
  forget_gone(draft);
  if (const auto refusal = refusal_of(draft)) return restart_refused(draft, *refusal);
  for (const Replica& replica : draft.gang.replicas) {
    if (!replica.pod) continue;
    restart_where_lost(draft, replica);
    if (is_finished(draft.status)) return;
  }
}

}  // namespace trainyard::decide
