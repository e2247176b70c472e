#include <fmt/format.h>

#include <utility>

#include "decide/calendar.h"
#include "decide/conditions.h"
#include "decide/objects/names.h"
#include "decide/plan.h"
#include "decide/pod_reports.h"
#include "decide/rules/autoscaler.h"
#include "decide/rules/converge.h"
#include "decide/rules/defect.h"
#include "decide/rules/finish.h"
#include "decide/rules/limits.h"
#include "decide/rules/pod_group.h"
#include "decide/rules/progress.h"
#include "decide/rules/recover.h"
#include "decide/rules/restart.h"
#include "decide/rules/stall.h"
#include "decide/rules/suspend.h"
#include "decide/rules/trouble.h"
#include "decide/status.h"

namespace trainyard::decide {
namespace {

void note_created(Draft& draft) {
  if (find_condition(draft.status, condition::kCreated)) return;
  set_condition(draft.status, condition::kCreated, true, reason::kCreated,
                fmt::format("PyTorchJob {} is created.", draft.job().name), draft.now);
}

/// A job that can be run by nobody waits for its owner to mend it.
void note_defect(Draft& draft, const std::string& defect) {
  set_trouble(draft.status, "InvalidSpec", defect, draft.now);
  draft.say_once(true, "InvalidSpec", defect, "trouble " + defect);
}

void report_trouble(Draft& draft) {
  Trouble trouble = trouble_of(draft);
  set_trouble(draft.status, trouble.reason, trouble.message, draft.now);
  draft.add(std::move(trouble.wants));
}

void run(Draft& draft) {
  resume(draft);
  draft.add(autoscaler_plan(draft.seen));
  draft.add(pod_group_plan(draft));
  draft.is_let_in = is_let_in(draft.seen, draft.settings);
  if (!draft.is_let_in && draft.seen.pods.empty()) return report_trouble(draft);  // no pod, no start time before that
  if (!draft.status.start_time) draft.status.start_time = draft.now;
  count_replicas(draft);
  draft.add(pod_reports(draft));
  take_progress(draft);
  for (EventText& warning : warnings_of(draft.job(), draft.settings)) draft.plan.events.push_back(std::move(warning));
  if (const auto success = success_of(draft)) return succeed(draft, *success);
  if (const auto exceeded = exceeded_limit(draft)) return fail(draft, *exceeded);
  draft.look_again_at(active_deadline(draft.job(), draft.status));
  if (draft.scope == RestartScope::Gang) {
    if (const auto refusal = refusal_of(draft)) return restart_refused(draft, *refusal);
    forgive_stall_of_lost_node(draft);
    const Timely<GangBreak> broken = gang_break(draft);
    draft.look_again_at(broken.look_again);
    if (broken.found) return restart_gang(draft, *broken.found);
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
    if (const std::string defect = defect_of(draft.job()); !defect.empty()) return note_defect(draft, defect);
    run(draft);
  }
  if (is_finished(draft.status)) clean_up(draft);
}

/// It is called for every job that is looked at, whichever way its look ends.
void note_what_is_there(Draft& draft) {
  if (draft.status.completion_time && draft.seen.job.status.completion_time) return;  // it changes no more
  note_ready(draft);
}

}  // namespace

Plan decide(const Observed& seen, const Settings& settings, TimePoint now) {
  if (is_managed_elsewhere(seen.job) || seen.job.deleted) return {};
  Draft draft{seen, settings, now, restart_scope_of(seen.job, settings), gang_of(seen), seen.job.status};
  mend_times(draft);
  recover_generation(draft);
  follow_policy(draft);
  note_what_is_there(draft);
  if (api::to_json(draft.status) != api::to_json(seen.job.status)) {
    draft.status.last_reconcile_time = now;
    draft.plan.status = std::move(draft.status);
  }
  return std::move(draft.plan);
}

}  // namespace trainyard::decide
