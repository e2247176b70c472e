#pragma once

#include "decide/draft.h"

namespace trainyard::decide {

/// Creates the job's PodGroup or brings it up to date. False while pods have to wait for it.
bool keep_pod_group(Draft& draft);
/// Deletes it and says so.
void remove_pod_group(Draft& draft);

}  // namespace trainyard::decide
