#pragma once

#include <vector>

#include "metrics/table.h"

namespace trainyard::train {

/// What runs and on what: version and compiler, the CPU's kernels, accelerators, this host. Known without a run.
std::vector<metrics::TableRow> environment_rows();

}  // namespace trainyard::train
