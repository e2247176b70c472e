#include "decide/rules/suspend.h"

#include <fmt/format.h>

#include <utility>

#include "decide/conditions.h"
#include "decide/rules/autoscaler.h"
#include "decide/rules/pod_group.h"
#include "decide/rules/progress.h"

namespace trainyard::decide {

namespace {

/// The first look at a job that is to be suspended.
void begin_suspension(Plan& plan, const Draft& draft) {
  api::JobStatus& status = *plan.status;
  const std::string message = fmt::format("PyTorchJob {} is suspended.", draft.job().name);
  if (is_true(status, condition::kRunning))
    set_condition(status, condition::kRunning, false, reason::kSuspended, message, draft.now);
  set_condition(status, condition::kSuspended, true, reason::kSuspended, message, draft.now);
  plan.say(false, reason::kSuspended, message);
  status.restarts.finished.clear();
  if (!draft.seen.pods.empty()) {  // what still runs of it must not meet those that come after
    ++status.restarts.generation;
    status.restarts.formed = 0;
  }
}

}  // namespace

Plan suspension(const Draft& draft) {
  Plan plan = draft.with_status();
  for (const api::Pod* pod : draft.seen.pods) plan.remove(*pod, draft.now);
  for (const api::Service* service : draft.seen.services) plan.remove(*service);
  plan.add(pod_group_removal(draft.seen));
  plan.add(autoscaler_removal(draft.seen));
  api::JobStatus& status = *plan.status;
  for (auto& [type, counts] : status.replicas) counts.active = counts.succeeded = counts.failed = 0;
  set_trouble(status, "", "", draft.now);
  status.progress = without_generation(std::move(status.progress));
  status.restarts.running_since.reset();
  if (!is_true(status, condition::kSuspended)) begin_suspension(plan, draft);
  return plan;
}

Plan resumption(const Draft& draft) {
  if (!is_true(draft.status, condition::kSuspended)) return {};
  const std::string message = fmt::format("PyTorchJob {} is resumed.", draft.job().name);
  Plan plan = draft.with_status();
  set_condition(*plan.status, condition::kSuspended, false, reason::kResumed, message, draft.now);
  plan.status->start_time = draft.now;
  plan.say(false, reason::kResumed, message);
  return plan;
}

}  // namespace trainyard::decide
