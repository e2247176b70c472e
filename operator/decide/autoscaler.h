#pragma once

#include "decide/draft.h"

namespace trainyard::decide {

/// The HorizontalPodAutoscaler of an elastic job with metrics: made, brought up to date, or removed where the metrics
/// are gone.
void keep_autoscaler(Draft& draft);
void remove_autoscaler(Draft& draft);

}  // namespace trainyard::decide
