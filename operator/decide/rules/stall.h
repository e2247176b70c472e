#pragma once

#include <chrono>
#include <optional>

#include "decide/rules/failures.h"

namespace trainyard::decide {

/// The reason of a cause: training did not get on within the annotation trainyard.dev/progress-deadline-seconds.
inline constexpr const char* kStalled = "Stalled";

/// Where the deadline is set and training has not got on for as long, the rank that is silent; before that, when it
/// will have been as long. The time counts while all pods run on nodes that are ready, and from the gang's first post
/// to this operator: whoever waits, or cannot post, does not stall. A short deadline waits until the ranks can have
/// said which of them is silent.
[[nodiscard]] Timely<Loss> stall(const Draft& draft);

/// Ranks ended for the loss of another: the one that rank 0 called silent, where its pod has not ended. None: no rank
/// was, or its pod's end tells more.
[[nodiscard]] std::optional<Loss> silent_behind(const Loss& consequence, const Draft& draft);

/// A node that turns not ready right after a stall on it was what stalled: no failure of the job's is counted.
[[nodiscard]] Plan forgiven_stall(const Draft& draft);

}  // namespace trainyard::decide
