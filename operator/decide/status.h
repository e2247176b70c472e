#pragma once

#include <optional>
#include <string>

#include "decide/draft.h"

namespace trainyard::decide {

/// Counts the pods of this generation by type.
void count_replicas(Draft& draft);
/// How many of the job's pods are ready, of how many; none of a job that has ended or is suspended.
void note_ready(Draft& draft);
/// The message of a job that has succeeded: its master has, or without one all workers have (of an elastic job: any).
/// None: it has not.
[[nodiscard]] std::optional<std::string> success_of(const Draft& draft);
/// Running, where the master is (without one: a worker) and nothing has failed.
void note_running(Draft& draft);

}  // namespace trainyard::decide
