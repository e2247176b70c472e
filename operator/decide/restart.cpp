#include "decide/restart.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "api/annotations.h"
#include "decide/conditions.h"
#include "decide/failures.h"
#include "decide/finish.h"
#include "decide/limits.h"
#include "decide/names.h"
#include "decide/progress.h"

namespace trainyard::decide {
namespace {

using namespace std::chrono_literals;

constexpr int kDeviceFault = 140;  // exit code: this node's accelerator failed (docs/interfaces.md)
constexpr size_t kMaxAvoided = 16;
constexpr auto kFirstWait = 10s;  // of a gang; a replica's is shorter
constexpr auto kGotOn = 10min;    // of running, after which the back-off begins anew

/// The `nth` restart in a row waits: none, then `first`, doubling up to five minutes.
std::chrono::milliseconds back_off(int nth, std::chrono::milliseconds first) {
  if (nth <= 1) return 0ms;
  return std::min<std::chrono::milliseconds>(first * (int64_t{1} << std::min(nth - 2, 20)), 5min);
}

/// Training got on since the last restart: a newer checkpoint is there, or it ran for long.
bool has_got_on(const Draft& draft) {
  if (has_newer_checkpoint(draft)) return true;
  const api::Condition* const running = find_condition(draft.status, condition::kRunning);
  return running && running->status && draft.now - running->transitioned >= kGotOn;
}

/// "exited with code 1 (Error): the last line" or "NodeLost: node n2 is not ready".
std::string described(const api::RestartCause& cause) {
  const std::string what = cause.exit_code ? fmt::format("exited with code {} ({})", *cause.exit_code, cause.reason)
                                           : fmt::format("is lost ({})", cause.reason);
  return cause.message.empty() ? what : fmt::format("{}: {}", what, cause.message);
}

/// "1 Worker replica(s) failed", counted over the gang as the reference counts.
std::string failed_of(api::ReplicaType type, const Draft& draft) {
  int failed = 0;
  for (const Replica& replica : draft.gang.replicas) {
    if (replica.type != type) continue;
    const bool is_leaving = replica.pod && is_running(*replica.pod) && replica.pod->deleted;
    failed += replica.pod && (has_failed(*replica.pod) || is_leaving);
  }
  return fmt::format("{} {} replica(s) failed", std::max(failed, 1), api::name_of(type));
}

void begin_generation(Draft& draft) {
  api::Restarts& restarts = draft.status.restarts;
  ++restarts.generation;
  restarts.formed = 0;
  restarts.checkpoint_step = newest_checkpoint(draft);
  if (draft.status.progress) {
    draft.status.progress->silent_ranks.clear();
    draft.status.progress->advanced = draft.now;
  }
  for (const Replica& replica : draft.gang.replicas)
    if (replica.pod) draft.remove(*replica.pod);
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

void announce_gang_restart(Draft& draft, const std::string& why) {
  const api::Restarts& restarts = draft.status.restarts;
  std::string message =
      fmt::format("PyTorchJob {} is restarting because {}; the whole gang starts anew as generation {}",
                  draft.job().name, why, restarts.generation);
  if (restarts.not_before && *restarts.not_before > draft.now) {
    const auto wait = std::chrono::ceil<std::chrono::seconds>(*restarts.not_before - draft.now);
    message += fmt::format(" in {}", human_duration(wait));
  }
  set_condition(draft.status, condition::kRestarting, true, reason::kRestarting, message, draft.now);
  draft.say(true, reason::kRestarting, message);
}

void fail_as_never(Draft& draft, const Replica& replica) {
  fail(draft, fmt::format("PyTorchJob {} is failed because {}.", draft.job().name, failed_of(replica.type, draft)));
}

/// The job's own restart policy and budget, before a failure is repeated. False: the job has failed by it.
bool may_restart(Draft& draft, const Loss& loss) {
  const std::string& policy = loss.replica->spec->restart_policy;
  if (policy == "Never") {
    fail_as_never(draft, *loss.replica);
    return false;
  }
  if (!is_retryable(policy, loss.cause.exit_code)) {
    fail(draft,
         fmt::format("job \"{}\" is failing because \"{}\" replica(s) failed.", draft.job().name,
                     api::name_of(loss.replica->type)),
         true);
    return false;
  }
  if (is_budget_spent(draft)) {
    fail_by_back_off_limit(draft);
    return false;
  }
  return true;
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

void restart_for(Draft& draft, Loss loss) {
  draft.status.restarts.last_cause = loss.cause;
  if (!loss.is_disruption && !may_restart(draft, loss)) return;
  if (loss.is_disruption) {
    ++draft.status.restarts.disruptions;
  } else {
    spend_budget(draft, kFirstWait);
  }
  if (loss.cause.exit_code == kDeviceFault) avoid(draft, loss.cause.node);
  const std::string why = loss.is_disruption ? fmt::format("pod {} {}", loss.replica->name, described(loss.cause))
                                             : fmt::format("{}: {} {}", failed_of(loss.replica->type, draft),
                                                           loss.replica->name, described(loss.cause));
  begin_generation(draft);
  announce_gang_restart(draft, why);
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

/// False: the job has failed by it.
bool restart_replica(Draft& draft, const Replica& replica) {
  const Loss loss{&replica, false, cause_of_failure(*replica.pod, draft.now)};
  draft.status.restarts.last_cause = loss.cause;
  if (!may_restart(draft, loss)) return false;
  spend_budget(draft, 100ms);
  draft.status.restarts.restarting_pods.push_back(replica.pod->uid);
  const std::string message =
      fmt::format("job {} is restarting because {} replica(s) failed.", draft.job().name, api::name_of(replica.type));
  set_condition(draft.status, condition::kRestarting, true, reason::kRestarting, message, draft.now);
  draft.say(true, reason::kRestarting, message);
  draft.say(true, reason::kRestarting,
            fmt::format("PyTorchJob {} is restarting because {}.", draft.job().name, failed_of(replica.type, draft)));
  draft.remove(*replica.pod);
  return true;
}

void replace_leaving(Draft& draft, const Replica& replica) {
  const std::string message =
      fmt::format("PyTorchJob {} is restarting because {}.", draft.job().name, failed_of(replica.type, draft));
  set_condition(draft.status, condition::kRestarting, true, reason::kRestarting, message, draft.now);
  draft.say_once(true, reason::kRestarting, message, "leaving " + replica.pod->uid);
}

}  // namespace

std::chrono::milliseconds longest_wait(int streak) {
  return back_off(streak, kFirstWait);
}

bool restart_gang(Draft& draft) {
  if (auto loss = loss_in_gang(draft)) {
    if (const auto until = cause_may_come_until(*loss, draft)) {
      draft.look_again_at(*until);
      return true;
    }
    restart_for(draft, std::move(*loss));
    return true;
  }
  if (auto cause = stall(draft)) {
    const Replica& first = draft.gang.replicas.front();
    restart_for(draft, {&first, false, std::move(*cause)});
    return true;
  }
  if (is_resized(draft)) {
    begin_generation(draft);
    announce_gang_restart(draft, fmt::format("it has {} replicas now", total_replicas(draft.job())));
    return true;
  }
  return false;
}

void restart_replicas(Draft& draft) {
  forget_gone(draft);
  for (const Replica& replica : draft.gang.replicas) {
    if (!replica.pod) continue;
    const api::Pod& pod = *replica.pod;
    if (has_failed(pod) && replica.spec->restart_policy == "Never") {
      draft.status.restarts.last_cause = cause_of_failure(pod, draft.now);
      return fail_as_never(draft, replica);
    }
    if (has_failed(pod) && !is_counted(draft, pod) && !pod.deleted) {
      if (!restart_replica(draft, replica)) return;
    } else if (has_failed(pod) && is_counted(draft, pod)) {
      draft.remove(pod);  // an operator before this one counted it and went before it deleted it
    } else if (is_running(pod) && pod.deleted && replica.spec->restart_policy != "Never") {
      replace_leaving(draft, replica);
    } else if (!has_ended(pod) && !pod.deleted && is_on_lost_node(pod, draft)) {
      ++draft.status.restarts.disruptions;
      draft.status.restarts.last_cause = {
          pod.name, pod.node, std::nullopt, "NodeLost", fmt::format("node {} is lost", pod.node), draft.now};
      draft.remove(pod);
    }
  }
}

}  // namespace trainyard::decide
