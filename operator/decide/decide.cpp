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

Plan creation(const Draft& draft) {
  if (find_condition(draft.status, condition::kCreated)) return {};
  Plan plan = draft.with_status();
  set_condition(*plan.status, condition::kCreated, true, reason::kCreated,
                fmt::format("PyTorchJob {} is created.", draft.job().name), draft.now);
  return plan;
}

/// A job that can be run by nobody waits for its owner to mend it.
Plan report_of(const std::string& defect, const Draft& draft) {
  Plan plan = draft.with_status();
  set_trouble(*plan.status, "InvalidSpec", defect, draft.now);
  plan.say(true, "InvalidSpec", defect, "trouble " + defect);
  return plan;
}

Plan warnings(const Draft& draft) {
  Plan plan;
  plan.events = warnings_of(draft.job(), draft.settings);
  return plan;
}

Plan report_of(Trouble trouble, const Draft& draft) {
  Plan plan = draft.with_status();
  set_trouble(*plan.status, trouble.reason, trouble.message, draft.now);
  plan.add(std::move(trouble.wants));
  return plan;
}

/// What one replica wants counts for the next one: they share the job's budget.
void restart_replicas(Draft& draft) {
  draft.add(forgotten_pods(draft));
  if (const auto refusal = refusal_of(draft)) return draft.add(refused_restart(draft, *refusal));
  for (const Replica& replica : draft.gang.replicas) {
    draft.add(replica_restart(draft, replica));
    if (is_finished(draft.status)) return;
  }
}

void run(Draft& draft) {
  draft.add(resumption(draft));
  draft.add(autoscaler_plan(draft.seen));
  draft.add(pod_group_plan(draft));
  draft.is_let_in = is_let_in(draft.seen, draft.settings);
  if (!draft.is_let_in && draft.seen.pods.empty())  // no pod, no start time before that
    return draft.add(report_of(trouble_of(draft), draft));
  if (!draft.status.start_time) draft.status.start_time = draft.now;
  draft.add(replica_counts(draft));
  draft.add(pod_reports(draft));
  draft.add(posted_progress(draft));
  draft.add(warnings(draft));
  if (const auto message = success_of(draft)) return draft.add(success(draft, *message));
  if (const auto exceeded = exceeded_limit(draft)) return draft.add(failure(draft, {*exceeded}));
  draft.look_again_at(active_deadline(draft.job(), draft.status));
  if (draft.scope == RestartScope::Gang) {
    if (const auto refusal = refusal_of(draft)) return draft.add(refused_restart(draft, *refusal));
    draft.add(forgiven_stall(draft));
    const Timely<GangBreak> broken = gang_break(draft);
    draft.look_again_at(broken.look_again);
    if (broken.found) return draft.add(gang_restart(draft, *broken.found));
  } else {
    restart_replicas(draft);
    if (is_finished(draft.status)) return;
  }
  draft.add(running(draft));
  draft.add(convergence(draft));
  draft.add(report_of(trouble_of(draft), draft));
}

void follow_policy(Draft& draft) {
  draft.add(creation(draft));
  if (!is_finished(draft.status)) {
    if (draft.policy().suspend) return draft.add(suspension(draft));  // one that was made defective while it ran, too
    if (const std::string defect = defect_of(draft.job()); !defect.empty()) return draft.add(report_of(defect, draft));
    run(draft);
  }
  if (is_finished(draft.status)) draft.add(clean_up(draft));
}

/// It is called for every job that is looked at, whichever way its look ends.
void note_what_is_there(Draft& draft) {
  if (draft.status.completion_time && draft.seen.job.status.completion_time) return;  // it changes no more
  draft.status.ready = ready_of(draft);
}

}  // namespace

Plan decide(const Observed& seen, const Settings& settings, TimePoint now) {
  if (is_managed_elsewhere(seen.job) || seen.job.deleted) return {};
  const RestartScope scope = restart_scope_of(seen.job, settings);
  Draft draft{seen, settings, now, scope, gang_of(seen), with_mended_times(seen.job.status, now)};
  draft.add(recovered_generation(draft));
  follow_policy(draft);
  note_what_is_there(draft);
  if (api::to_json(draft.status) != api::to_json(seen.job.status)) {
    draft.status.last_reconcile_time = now;
    draft.plan.status = std::move(draft.status);
  }
  return std::move(draft.plan);
}

}  // namespace trainyard::decide
