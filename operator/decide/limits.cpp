#include "decide/limits.h"

#include <fmt/format.h>

#include "decide/calendar.h"
#include "decide/finish.h"

namespace trainyard::decide {
namespace {

/// Restarts of containers in place, by the kubelet, in pods that run: the reference's count.
int restarts_in_place(const Draft& draft) {
  int sum = 0;
  for (const Replica& replica : draft.gang.replicas) {
    if (!replica.pod || !is_running(*replica.pod)) continue;
    if (replica.spec->restart_policy != "OnFailure" && replica.spec->restart_policy != "Always") continue;
    for (const api::ContainerStatus& one : replica.pod->containers) sum += one.restarts;
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

void fail_by_back_off_limit(Draft& draft) {
  fail(draft, fmt::format("Job {} has failed because it has reached the specified backoff limit", draft.job().name));
}

bool enforce_limits(Draft& draft) {
  if (restarts_too_often(draft)) {
    fail_by_back_off_limit(draft);
    return true;
  }
  const auto deadline = draft.policy().active_deadline_seconds;
  if (!deadline || !draft.status.start_time) return false;
  const TimePoint end = *draft.status.start_time + bounded(std::chrono::seconds(*deadline));
  if (draft.now < end) {
    draft.look_again_at(end);
    return false;
  }
  fail(draft, fmt::format("Job {} has failed because it was active longer than specified deadline", draft.job().name));
  return true;
}

}  // namespace trainyard::decide
