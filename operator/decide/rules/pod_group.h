#pragma once

#include "decide/draft.h"

namespace trainyard::decide {

/// Whether pods may be made: Volcano's scheduler lets a PodGroup in when it can place the whole gang.
[[nodiscard]] bool is_let_in(const Observed& seen, const Settings& settings);
/// The job's PodGroup is made or brought up to date.
[[nodiscard]] Plan pod_group_plan(const Draft& draft);
/// It is deleted, and that is said.
[[nodiscard]] Plan pod_group_removal(const Observed& seen);

}  // namespace trainyard::decide
