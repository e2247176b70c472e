#pragma once

#include "decide/draft.h"

namespace trainyard::decide {

/// What the pods themselves report is relayed in events, as the reference does: how they ended, what they wait for.
[[nodiscard]] Plan pod_reports(const Draft& draft);

}  // namespace trainyard::decide
