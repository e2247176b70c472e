#pragma once

#include <string>

#include "decide/draft.h"

namespace trainyard::decide {

/// Why no arrangement of the cluster's nodes, however empty, can hold the gang: a pod that no node's labels, taints or
/// size admit, or pods that must share one host and do not fit on any. "" where some could, where something on the
/// cluster makes nodes, or where nodes are not watched.
[[nodiscard]] std::string why_it_never_fits(const Draft& draft);

}  // namespace trainyard::decide
