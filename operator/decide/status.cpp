#include "decide/status.h"

#include <fmt/format.h>

#include <algorithm>

#include "decide/conditions.h"
#include "decide/finish.h"
#include "decide/names.h"

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

void note_formed(Draft& draft) {
  const auto is_there = [&](const Replica& replica) { return replica.pod && is_current(*replica.pod, draft.status); };
  const auto has_begun = [](const Replica& replica) { return is_running(*replica.pod) || has_ended(*replica.pod); };
  const auto& replicas = draft.gang.replicas;
  const int places = static_cast<int>(replicas.size());
  int& formed = draft.status.restarts.formed;
  formed = std::min(formed, places);
  if (std::ranges::all_of(replicas, is_there) && std::ranges::any_of(replicas, has_begun)) formed = places;
}

}  // namespace

void count_replicas(Draft& draft) {
  draft.status.replicas.clear();
  for (const auto& [type, spec] : draft.job().spec.replicas)
    draft.status.replicas[type].selector = selector_of(draft.job(), type);
  for (const Replica& replica : draft.gang.replicas)
    if (replica.pod && is_current(*replica.pod, draft.status)) count(draft.status.replicas[replica.type], *replica.pod);
  if (draft.scope == RestartScope::Gang) note_formed(draft);
}

bool conclude(Draft& draft) {
  const api::ReplicaType type = leading_type(draft);
  const int succeeded = counts_of(draft, type).succeeded;
  const auto spec = draft.job().spec.replicas.find(type);
  if (succeeded == 0 || spec == draft.job().spec.replicas.end()) return false;
  const bool is_any_enough = type == api::ReplicaType::Worker && draft.job().spec.elastic;
  if (succeeded < spec->second.replicas && !is_any_enough) return false;
  succeed(draft, fmt::format("{} {}successfully completed.", subject(draft), has_master(draft.job()) ? "is " : ""));
  return true;
}

void note_running(Draft& draft) {
  const auto has_failure = [](const auto& entry) { return entry.second.failed > 0; };
  if (std::ranges::any_of(draft.status.replicas, has_failure)) return;
  if (counts_of(draft, leading_type(draft)).active == 0) return;
  set_condition(draft.status, condition::kRunning, true, reason::kRunning,
                fmt::format("{} is running.", subject(draft)), draft.now);
}

}  // namespace trainyard::decide
