#include "controller/counters.h"

#include "decide/conditions.h"

namespace trainyard::controller {

JobCounts counts_between(const api::JobStatus& before, const api::JobStatus& after) {
  const auto became = [&](const char* type) {
    return !decide::is_true(before, type) && decide::is_true(after, type) ? 1 : 0;
  };
  const auto restarts = [](const api::JobStatus& status) {
    return status.restarts.count + status.restarts.disruptions;
  };
  return {became(decide::condition::kCreated), became(decide::condition::kSucceeded),
          became(decide::condition::kFailed), std::max(restarts(after) - restarts(before), 0)};
}

}  // namespace trainyard::controller
