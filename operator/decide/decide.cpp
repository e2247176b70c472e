#include <fmt/format.h>

#include "decide/autoscaler.h"
#include "decide/calendar.h"
#include "decide/conditions.h"
#include "decide/converge.h"
#include "decide/finish.h"
#include "decide/limits.h"
#include "decide/plan.h"
#include "decide/pod_group.h"
#include "decide/progress.h"
#include "decide/restart.h"
#include "decide/status.h"
#include "decide/suspend.h"
#include "decide/trouble.h"

namespace trainyard::decide {
namespace {

constexpr const char* kOwnManager = "kubeflow.org/training-operator";

bool is_managed_elsewhere(const api::Job& job) {
  return !job.spec.run_policy.managed_by.empty() && job.spec.run_policy.managed_by != kOwnManager;
}

void note_created(Draft& draft) {
  if (find_condition(draft.status, condition::kCreated)) return;
  set_condition(draft.status, condition::kCreated, true, reason::kCreated,
                fmt::format("PyTorchJob {} is created.", draft.job().name), draft.now);
}

/// A job that can be run by nobody waits for its owner to mend it.
bool is_defective(Draft& draft) {
  const std::string defect = defect_of(draft.job());
  if (defect.empty()) return false;
  set_trouble(draft.status, "InvalidSpec", defect, draft.now);
  draft.say_once(true, "InvalidSpec", defect, "trouble " + defect);
  return true;
}

void run(Draft& draft) {
  resume(draft);
  keep_autoscaler(draft);
  draft.is_let_in = keep_pod_group(draft);
  if (!draft.is_let_in && draft.seen.pods.empty()) return;  // no pod, and no start time, before the group is let in
  if (!draft.status.start_time) draft.status.start_time = draft.now;
  count_replicas(draft);
  relay_pod_reports(draft);
  take_progress(draft);
  for (EventText& warning : warnings_of(draft.job(), draft.settings)) draft.plan.events.push_back(std::move(warning));
  if (conclude(draft) || enforce_limits(draft)) return;
  if (draft.scope == RestartScope::Gang) {
    if (restart_gang(draft)) return;
  } else {
    restart_replicas(draft);
    if (is_finished(draft.status)) return;
  }
  note_running(draft);
  converge(draft);
  report_trouble(draft);
}

void follow_policy(Draft& draft) {
  note_created(draft);
  if (!is_finished(draft.status)) {
    if (draft.policy().suspend) return suspend(draft);  // one that was made defective while it ran, too
    if (is_defective(draft)) return;
    run(draft);
  }
  if (is_finished(draft.status)) clean_up(draft);
}

}  // namespace

Plan decide(const Observed& seen, const Settings& settings, TimePoint now) {
  if (is_managed_elsewhere(seen.job) || seen.job.deleted) return {};
  Draft draft{seen, settings, now, restart_scope_of(seen.job, settings), gang_of(seen), seen.job.status};
  mend_times(draft);
  follow_policy(draft);
  if (api::to_json(draft.status) != api::to_json(seen.job.status)) {
    draft.status.last_reconcile_time = now;
    draft.plan.status = std::move(draft.status);
  }
  return std::move(draft.plan);
}

}  // namespace trainyard::decide
