#pragma once

#include <optional>
#include <string>

#include "decide/draft.h"

namespace trainyard::decide {

/// Counts the pods of this generation by type.
[[nodiscard]] Plan replica_counts(const Draft& draft);
/// "1/2": how many of the job's pods are ready, of how many; none of a job that has ended or is suspended.
[[nodiscard]] std::string ready_of(const Draft& draft);
/// The message of a job that has succeeded: its master has, or without one all workers have (of an elastic job: any).
/// None: it has not.
[[nodiscard]] std::optional<std::string> success_of(const Draft& draft);
/// Running, where the master is (without one: a worker) and nothing has failed.
[[nodiscard]] Plan running(const Draft& draft);

}  // namespace trainyard::decide
