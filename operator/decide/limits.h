#pragma once

#include "decide/draft.h"

namespace trainyard::decide {

/// backoffLimit: as many failures as the job may have are behind it, so that one more ends it.
[[nodiscard]] bool is_budget_spent(const Draft& draft);
void fail_by_back_off_limit(Draft& draft);

/// Fails a job whose containers the kubelet restarts too often, or that is active longer than activeDeadlineSeconds.
/// True where it did.
bool enforce_limits(Draft& draft);

}  // namespace trainyard::decide
