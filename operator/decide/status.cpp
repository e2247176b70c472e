#include "decide/status.h"

#include <fmt/format.h>

#include <algorithm>

#include "decide/conditions.h"
#include "decide/objects/names.h"

namespace trainyard::decide {
namespace {

void count(api::ReplicaStatus& counts, const api::Pod& pod) {
  if (has_succeeded(pod)) {
    ++counts.succeeded;
  } else if (has_failed(pod) || (is_running(pod) && pod.deleted)) {
    ++counts.failed;
  } else if (is_running(pod)) {
    ++counts.active;
  }
}

const api::ReplicaStatus& counts_of(const Draft& draft, api::ReplicaType type) {
  static const api::ReplicaStatus none;
  const auto found = draft.status.replicas.find(type);
  return found == draft.status.replicas.end() ? none : found->second;
}

/// Whose end is the job's end.
api::ReplicaType leading_type(const Draft& draft) {
  return has_master(draft.job()) ? api::ReplicaType::Master : api::ReplicaType::Worker;
}

/// The reference words a job without a master differently.
std::string subject(const Draft& draft) {
  const api::Job& job = draft.job();
  return has_master(job) ? fmt::format("PyTorchJob {}", job.name) : fmt::format("PyTorchJob {}/{}", job.ns, job.name);
}

bool is_there(const Replica& replica, const Draft& draft) {
  return replica.pod && is_current(*replica.pod, draft.status);
}

/// Since when all pods run. A rank that is done needs no pod any more.
void note_running_since(api::Restarts& restarts, const Draft& draft) {
  for (size_t place = 0; place < draft.gang.replicas.size(); ++place) {
    const Replica& replica = draft.gang.replicas[place];
    const bool is_done = !replica.pod && restarts.finished.contains(static_cast<int>(place));
    const bool goes_on = is_there(replica, draft) &&
                         (has_succeeded(*replica.pod) || (is_running(*replica.pod) && !replica.pod->deleted));
    if (!is_done && !goes_on) return restarts.running_since.reset();
  }
  if (!restarts.running_since) restarts.running_since = draft.now;
}

void note_formed(api::Restarts& restarts, const Draft& draft) {
  const auto& replicas = draft.gang.replicas;
  const int places = static_cast<int>(replicas.size());
  int there = 0;
  bool has_begun = false;
  for (int place = 0; place < places; ++place) {
    const Replica& replica = replicas[static_cast<size_t>(place)];
    const bool is_pod = is_there(replica, draft);
    there += is_pod || restarts.finished.contains(place);
    has_begun = has_begun || (is_pod && (is_running(*replica.pod) || has_ended(*replica.pod)));
  }
  restarts.formed = std::min(restarts.formed, places);
  if (there == places && has_begun) restarts.formed = places;
}

/// A rank that is done stays done when its pod is removed.
void count_finished(api::JobStatus& status, const Draft& draft) {
  std::set<int>& finished = status.restarts.finished;
  const int places = static_cast<int>(draft.gang.replicas.size());
  finished.erase(finished.lower_bound(places), finished.end());
  for (int place = 0; place < places; ++place) {
    const Replica& replica = draft.gang.replicas[static_cast<size_t>(place)];
    if (is_there(replica, draft) && has_succeeded(*replica.pod)) finished.insert(place);
    if (!replica.pod && finished.contains(place)) ++status.replicas[replica.type].succeeded;
  }
}

/// The phase tells it of a pod that has no condition Ready.
bool is_ready(const api::Pod& pod) {
  const auto is_not_ready = [](const api::PodCondition& one) { return one.type == "Ready" && !one.status; };
  return is_running(pod) && !pod.deleted && std::ranges::none_of(pod.conditions, is_not_ready);
}

}  // namespace

Plan replica_counts(const Draft& draft) {
  Plan plan = draft.with_status();
  api::JobStatus& status = *plan.status;
  status.replicas.clear();
  for (const auto& [type, spec] : draft.job().spec.replicas)
    status.replicas[type].selector = selector_of(draft.job(), type);
  for (const Replica& replica : draft.gang.replicas)
    if (is_there(replica, draft)) count(status.replicas[replica.type], *replica.pod);
  if (draft.scope == RestartScope::Gang) {
    count_finished(status, draft);
    note_formed(status.restarts, draft);
    note_running_since(status.restarts, draft);
  } else {
    status.restarts.finished.clear();
  }
  return plan;
}

std::string ready_of(const Draft& draft) {
  const bool runs = !is_finished(draft.status) && !draft.policy().suspend;
  const auto& replicas = draft.gang.replicas;
  const auto ready = std::ranges::count_if(
      replicas, [&](const Replica& replica) { return runs && is_there(replica, draft) && is_ready(*replica.pod); });
  return fmt::format("{}/{}", ready, replicas.size());
}

std::optional<std::string> success_of(const Draft& draft) {
  const api::ReplicaType type = leading_type(draft);
  const int succeeded = counts_of(draft, type).succeeded;
  const auto spec = draft.job().spec.replicas.find(type);
  if (succeeded == 0 || spec == draft.job().spec.replicas.end()) return std::nullopt;
  const bool is_any_enough = type == api::ReplicaType::Worker && draft.job().spec.elastic;
  if (succeeded < spec->second.replicas && !is_any_enough) return std::nullopt;
  return fmt::format("{} {}successfully completed.", subject(draft), has_master(draft.job()) ? "is " : "");
}

Plan running(const Draft& draft) {
  const auto has_failure = [](const auto& entry) { return entry.second.failed > 0; };
  if (std::ranges::any_of(draft.status.replicas, has_failure)) return {};
  if (counts_of(draft, leading_type(draft)).active == 0) return {};
  Plan plan = draft.with_status();
  set_condition(*plan.status, condition::kRunning, true, reason::kRunning,
                fmt::format("{} is running.", subject(draft)), draft.now);
  return plan;
}

}  // namespace trainyard::decide
