#pragma once

#include <string>

#include "decide/draft.h"

namespace trainyard::decide {

/// Ends the job as Failed. `is_warning`: of the event.
void fail(Draft& draft, const std::string& message, bool is_warning = false);
void succeed(Draft& draft, const std::string& message);

/// A finished job: pods and services by cleanPodPolicy, PodGroup and autoscaler, and the job itself when its time to
/// live is over.
void clean_up(Draft& draft);

}  // namespace trainyard::decide
