#include "decide/rules/suspend.h"

#include <fmt/format.h>

#include "decide/conditions.h"
#include "decide/rules/autoscaler.h"
#include "decide/rules/pod_group.h"
#include "decide/rules/progress.h"

namespace trainyard::decide {

void suspend(Draft& draft) {
  for (const api::Pod* pod : draft.seen.pods) draft.remove(*pod);
  for (const api::Service* service : draft.seen.services) draft.remove(*service);
  draft.add(pod_group_removal(draft.seen));
  draft.add(autoscaler_removal(draft.seen));
  for (auto& [type, counts] : draft.status.replicas) counts.active = counts.succeeded = counts.failed = 0;
  set_trouble(draft.status, "", "", draft.now);
  forget_generation(draft);
  draft.status.restarts.running_since.reset();
  if (is_true(draft.status, condition::kSuspended)) return;
  const std::string message = fmt::format("PyTorchJob {} is suspended.", draft.job().name);
  if (is_true(draft.status, condition::kRunning))
    set_condition(draft.status, condition::kRunning, false, reason::kSuspended, message, draft.now);
  set_condition(draft.status, condition::kSuspended, true, reason::kSuspended, message, draft.now);
  draft.say(false, reason::kSuspended, message);
  draft.status.restarts.finished.clear();
  if (!draft.seen.pods.empty()) {  // what still runs of it must not meet those that come after
    ++draft.status.restarts.generation;
    draft.status.restarts.formed = 0;
  }
}

void resume(Draft& draft) {
  if (!is_true(draft.status, condition::kSuspended)) return;
  const std::string message = fmt::format("PyTorchJob {} is resumed.", draft.job().name);
  set_condition(draft.status, condition::kSuspended, false, reason::kResumed, message, draft.now);
  draft.status.start_time = draft.now;
  draft.say(false, reason::kResumed, message);
}

}  // namespace trainyard::decide
