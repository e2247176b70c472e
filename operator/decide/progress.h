#pragma once

#include <optional>

#include "decide/draft.h"

namespace trainyard::decide {

/// Takes what rank 0 told into the status, at most every ten seconds, so that etcd gets few writes.
void take_progress(Draft& draft);

/// Where the annotation trainyard.dev/progress-deadline-seconds is set and training has not got on for as long while it
/// runs: why it is restarted, the silent ranks named.
[[nodiscard]] std::optional<api::RestartCause> stall(Draft& draft);

}  // namespace trainyard::decide
