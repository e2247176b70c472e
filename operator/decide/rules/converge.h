#pragma once

#include "decide/draft.h"

namespace trainyard::decide {

/// Makes what is missing of the gang and takes away what is too much or of an earlier generation.
[[nodiscard]] Plan convergence(const Draft& draft);

}  // namespace trainyard::decide
