#pragma once

#include "decide/draft.h"

namespace trainyard::decide {

/// Takes everything of the job away but the job, whatever cleanPodPolicy says.
[[nodiscard]] Plan suspension(const Draft& draft);
/// Where the job was suspended until now: it starts anew.
[[nodiscard]] Plan resumption(const Draft& draft);

}  // namespace trainyard::decide
