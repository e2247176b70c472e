#pragma once

#include "decide/draft.h"

namespace trainyard::decide {

/// -1: none is known.
[[nodiscard]] int64_t newest_checkpoint(const Draft& draft);
/// Than when this generation began.
[[nodiscard]] bool has_newer_checkpoint(const Draft& draft);

/// backoffLimit: as many failures as the job may have are behind it, so that one more ends it. A newer checkpoint makes
/// up for those before it: what gets on may fail again, what fails at the same place does not go on for ever.
[[nodiscard]] bool is_budget_spent(const Draft& draft);
void fail_by_back_off_limit(Draft& draft);

/// Fails a job whose containers the kubelet restarts too often, or that is active longer than activeDeadlineSeconds.
/// True where it did.
bool enforce_limits(Draft& draft);

}  // namespace trainyard::decide
