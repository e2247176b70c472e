#pragma once

#include <optional>
#include <string>

#include "decide/draft.h"

namespace trainyard::decide {

/// Why a job fails.
struct Failure {
  std::string message{};
  bool is_warning = false;                   ///< the event
  std::optional<api::RestartCause> cause{};  ///< which the status then keeps; none: no pod's end
};

/// The job ends as Failed.
[[nodiscard]] Plan failure(const Draft& draft, const Failure& why);
/// It ends as Succeeded.
[[nodiscard]] Plan success(const Draft& draft, const std::string& message);

/// A finished job: pods and services by cleanPodPolicy, PodGroup and autoscaler, and the job itself when its time to
/// live is over.
[[nodiscard]] Plan clean_up(const Draft& draft);

}  // namespace trainyard::decide
