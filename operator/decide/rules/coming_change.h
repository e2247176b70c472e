#pragma once

#include <string>
#include <vector>

#include "decide/draft.h"

namespace trainyard::decide {

/// A difference between what runs now and what a new start would run.
struct ComingChange {
  std::string reason, message;
  std::string once;  ///< it is said once a generation and change: another one is told of again
};

/// The changes that the next start of the pods will bring, in this order: the job has another template than its pods
/// were made from, and a ConfigMap was edited, so that rank 0's files have another content than it read.
[[nodiscard]] std::vector<ComingChange> coming_changes(const Draft& draft);

}  // namespace trainyard::decide
