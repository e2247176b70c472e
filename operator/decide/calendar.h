#pragma once

#include "decide/draft.h"

namespace trainyard::decide {

/// Times of the status that lie ahead were written by a calendar that has been set back since, or by another operator's
/// that goes wrong: what counts from them (deadline, time to live, back-off, stall) counts from now.
void mend_times(Draft& draft);

}  // namespace trainyard::decide
