#pragma once

#include "decide/plan.h"

namespace trainyard::decide {

/// The HorizontalPodAutoscaler of an elastic job with metrics is made, brought up to date, or removed where the metrics
/// are gone.
[[nodiscard]] Plan autoscaler_plan(const Observed& seen);
/// It is removed.
[[nodiscard]] Plan autoscaler_removal(const Observed& seen);

}  // namespace trainyard::decide
