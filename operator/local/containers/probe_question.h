#pragma once

#include <functional>

#include "base/json.h"

namespace trainyard::local {

/// The answer to a probe's question. Its number is the exit code of the process that asks.
enum class Answer : int {
  Yes = 0,
  No = 1,
  Redirect = 2,  ///< yes, by a redirect that is not followed; a kubelet warns of it
};
using Question = std::function<Answer()>;

/// The question of a tcpSocket or an httpGet, asked as a kubelet asks it. The function is empty where the probe has
/// neither. Throws Refusal where the port or the host is none here.
[[nodiscard]] Question question_of(const Json& probe, const Json& container);

}  // namespace trainyard::local
