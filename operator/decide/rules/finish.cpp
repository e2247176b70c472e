#include "decide/rules/finish.h"

#include <fmt/format.h>

#include "decide/calendar.h"
#include "decide/conditions.h"
#include "decide/rules/autoscaler.h"
#include "decide/rules/failures.h"
#include "decide/rules/pod_group.h"
#include "decide/rules/progress.h"

namespace trainyard::decide {
namespace {

bool is_cleaned_away(const api::Pod* pod, const std::string& policy) {
  if (policy == "All") return true;
  return policy == "Running" && !(pod && has_ended(*pod));
}

void clean_pods(Plan& plan, const Draft& draft) {
  const std::string& policy = draft.policy().clean_pod_policy;
  for (const Replica& replica : draft.gang.replicas) {
    if (!is_cleaned_away(replica.pod, policy)) continue;
    if (replica.pod) plan.remove(*replica.pod, draft.now);
    if (replica.service) plan.remove(*replica.service);
  }
  for (const api::Pod* pod : draft.gang.surplus_pods)
    if (is_cleaned_away(pod, policy)) plan.remove(*pod, draft.now);
  // These are of places that the job no longer had when it ended: no policy keeps them.
  for (const api::Service* service : draft.gang.surplus_services) plan.remove(*service);
}

void expire(Plan& plan, const Draft& draft) {
  const auto ttl = draft.policy().ttl_seconds_after_finished;
  if (!ttl) return;
  const TimePoint end = *plan.status->completion_time + bounded(std::chrono::seconds(*ttl));
  if (draft.now < end) return plan.look_again_at(end);
  const api::Job& job = draft.job();
  plan.deletes.push_back({Kind::Job, job.name, job.uid, std::nullopt, fmt::format("Deleted job: {}", job.name)});
}

}  // namespace

Plan failure(const Draft& draft, const Failure& why) {
  Plan plan = draft.with_status();
  api::JobStatus& status = *plan.status;
  if (why.cause) note_cause(status.restarts, *why.cause);
  plan.say(why.is_warning, reason::kFailed, why.message);
  set_condition(status, condition::kFailed, true, reason::kFailed, why.message, draft.now);
  if (!status.completion_time) status.completion_time = draft.now;
  return plan;
}

Plan success(const Draft& draft, const std::string& message) {
  Plan plan = draft.with_status();
  api::JobStatus& status = *plan.status;
  plan.say(false, reason::kSucceeded, message);
  set_condition(status, condition::kSucceeded, true, reason::kSucceeded, message, draft.now);
  if (!status.completion_time) status.completion_time = draft.now;
  for (auto& [type, counts] : status.replicas) {
    counts.succeeded += counts.active;
    counts.active = 0;
  }
  return plan;
}

Plan clean_up(const Draft& draft) {
  Plan plan = draft.with_status();
  api::JobStatus& status = *plan.status;
  if (!status.completion_time) {  // the reference leaves it out after some failures, and the job would stay
    const api::Condition* const failed = find_condition(status, condition::kFailed);
    status.completion_time = failed ? failed->transitioned : draft.now;
  }
  set_trouble(status, "", "", draft.now);
  status.progress = final_progress(draft);
  clean_pods(plan, draft);
  plan.add(pod_group_removal(draft.seen));
  plan.add(autoscaler_removal(draft.seen));
  expire(plan, draft);
  return plan;
}

}  // namespace trainyard::decide
