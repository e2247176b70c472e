#pragma once

#include "decide/draft.h"

namespace trainyard::decide {

/// Takes everything of the job away but the job, whatever cleanPodPolicy says.
void suspend(Draft& draft);
/// Where the job was suspended until now: it starts anew.
void resume(Draft& draft);

}  // namespace trainyard::decide
