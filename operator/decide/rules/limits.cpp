#include "decide/rules/limits.h"

#include <fmt/format.h>

#include "api/annotations.h"
#include "base/text.h"
#include "decide/calendar.h"
#include "decide/objects/names.h"

namespace trainyard::decide {
namespace {

/// Restarts of containers in place, by the kubelet, in pods that run: the reference's count, but for sidecars, which
/// are restarted whatever they end with.
int restarts_in_place(const Draft& draft) {
  int sum = 0;
  for (const Replica& replica : draft.gang.replicas) {
    if (!replica.pod || !is_running(*replica.pod)) continue;
    if (replica.spec->restart_policy != "OnFailure" && replica.spec->restart_policy != "Always") continue;
    for (const api::ContainerStatus& one : replica.pod->containers)
      if (!one.is_restartable) sum += one.restarts;
  }
  return sum;
}

bool restarts_too_often(const Draft& draft) {
  const auto limit = draft.policy().backoff_limit;
  if (!limit) return false;
  const int restarts = restarts_in_place(draft);
  return *limit == 0 ? restarts > 0 : restarts >= *limit;
}

}  // namespace

int64_t newest_checkpoint(const Draft& draft) {
  const auto& progress = draft.status.progress;
  return progress ? progress->checkpoint_step : -1;
}

bool has_newer_checkpoint(const Draft& draft) {
  return newest_checkpoint(draft) > draft.status.restarts.checkpoint_step;
}

bool is_budget_spent(const Draft& draft) {
  const auto limit = draft.policy().backoff_limit;
  const api::Restarts& restarts = draft.status.restarts;
  const int spent = has_newer_checkpoint(draft) ? 0 : restarts.count - restarts.forgiven;
  return limit && spent >= *limit;
}

std::string back_off_limit_message(const api::Job& job) {
  return fmt::format("Job {} has failed because it has reached the specified backoff limit", job.name);
}

std::optional<TimePoint> active_deadline(const api::Job& job, const api::JobStatus& status) {
  const auto seconds = job.spec.run_policy.active_deadline_seconds;
  if (!seconds || !status.start_time) return std::nullopt;
  return *status.start_time + bounded(std::chrono::seconds(*seconds));
}

bool ended_by_active_deadline(const api::Job& job, const api::JobStatus& status) {
  const auto deadline = active_deadline(job, status);
  return deadline && status.completion_time && *status.completion_time >= *deadline;
}

std::optional<std::string> exceeded_limit(const Draft& draft) {
  if (restarts_too_often(draft)) return back_off_limit_message(draft.job());
  const auto end = active_deadline(draft.job(), draft.status);
  if (!end || draft.now < *end) return std::nullopt;
  return fmt::format("Job {} has failed because it was active longer than specified deadline", draft.job().name);
}

std::optional<std::chrono::seconds> progress_deadline_of(const api::Job& job) {
  const auto seconds = parse_int(annotation_of(job, api::kProgressDeadlineAnnotation));
  return seconds && *seconds > 0 ? std::optional(bounded(std::chrono::seconds(*seconds))) : std::nullopt;
}

}  // namespace trainyard::decide
