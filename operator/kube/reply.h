#pragma once

#include <optional>
#include <string_view>

#include "base/json.h"
#include "kube/http.h"
#include "kube/result.h"

// Answers of the API server as values, from their bytes.
namespace trainyard::kube {

/// What an outcome that is no success means. For a write "Server" and "NotSent" are certain: it did not happen.
[[nodiscard]] ApiError error_of(const Outcome& outcome, Method method);
/// The same of a Status object within a 200: a watch's ERROR event.
[[nodiscard]] ApiError error_of_status(const Json& status);

[[nodiscard]] inline bool is_success(const Outcome& outcome) {
  return outcome.trouble == Trouble::None && outcome.status >= 200 && outcome.status < 300;
}
/// The body of a success as JSON; none where it is something else.
[[nodiscard]] std::optional<Json> parse_body(std::string_view body);

/// Whether the object that a DELETE was for is gone with its reply, rather than going (grace time, finalizers).
[[nodiscard]] bool is_gone(const Json& delete_reply);

}  // namespace trainyard::kube
