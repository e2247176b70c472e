#pragma once

#include "decide/draft.h"

namespace trainyard::decide {

/// Makes what is missing of the gang and takes away what is too much or of an earlier generation.
void converge(Draft& draft);

}  // namespace trainyard::decide
