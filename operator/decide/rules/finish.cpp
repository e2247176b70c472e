#include "decide/rules/finish.h"

#include <fmt/format.h>

#include "decide/calendar.h"
#include "decide/conditions.h"
#include "decide/rules/autoscaler.h"
#include "decide/rules/pod_group.h"
#include "decide/rules/progress.h"

namespace trainyard::decide {
namespace {

bool is_cleaned_away(const api::Pod* pod, const std::string& policy) {
  if (policy == "All") return true;
  return policy == "Running" && !(pod && has_ended(*pod));
}

void clean_pods(Draft& draft) {
  const std::string& policy = draft.policy().clean_pod_policy;
  for (const Replica& replica : draft.gang.replicas) {
    if (!is_cleaned_away(replica.pod, policy)) continue;
    if (replica.pod) draft.remove(*replica.pod);
    if (replica.service) draft.remove(*replica.service);
  }
  for (const api::Pod* pod : draft.gang.surplus_pods)
    if (is_cleaned_away(pod, policy)) draft.remove(*pod);
  // Of places that the job no longer had when it ended: no policy keeps those.
  for (const api::Service* service : draft.gang.surplus_services) draft.remove(*service);
}

void expire(Draft& draft) {
  const auto ttl = draft.policy().ttl_seconds_after_finished;
  if (!ttl || !draft.status.completion_time) return;
  const TimePoint end = *draft.status.completion_time + bounded(std::chrono::seconds(*ttl));
  if (draft.now < end) return draft.look_again_at(end);
  const api::Job& job = draft.job();
  draft.plan.deletes.push_back({Kind::Job, job.name, job.uid, std::nullopt, fmt::format("Deleted job: {}", job.name)});
}

}  // namespace

void fail(Draft& draft, const std::string& message, bool is_warning) {
  draft.say(is_warning, reason::kFailed, message);
  set_condition(draft.status, condition::kFailed, true, reason::kFailed, message, draft.now);
  if (!draft.status.completion_time) draft.status.completion_time = draft.now;
}

void succeed(Draft& draft, const std::string& message) {
  draft.say(false, reason::kSucceeded, message);
  set_condition(draft.status, condition::kSucceeded, true, reason::kSucceeded, message, draft.now);
  if (!draft.status.completion_time) draft.status.completion_time = draft.now;
  for (auto& [type, counts] : draft.status.replicas) {
    counts.succeeded += counts.active;
    counts.active = 0;
  }
}

void clean_up(Draft& draft) {
  if (!draft.status.completion_time) {  // the reference leaves it out after some failures, and the job would stay
    const api::Condition* const failed = find_condition(draft.status, condition::kFailed);
    draft.status.completion_time = failed ? failed->transitioned : draft.now;
  }
  set_trouble(draft.status, "", "", draft.now);
  finish_progress(draft);
  clean_pods(draft);
  draft.add(pod_group_removal(draft.seen));
  draft.add(autoscaler_removal(draft.seen));
  expire(draft);
}

}  // namespace trainyard::decide
