#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <variant>

// The operator returns errors: 404, 409, 410 and 429 are ordinary answers, handled where they arrive.
namespace trainyard::kube {

enum class ErrorKind {
  NotFound,       ///< 404
  AlreadyExists,  ///< 409 with that reason
  Conflict,       ///< 409: the guard did not hold
  Gone,           ///< 410: a watch or a page too old
  Invalid,        ///< 400, 422 and other refusals of what was sent: sending it again would change nothing
  Forbidden,      ///< 403: no right, or an admission plugin or quota refused it
  Unauthorized,   ///< 401, after the credentials were read anew
  TooMany,        ///< 429 still, after the retries
  Server,         ///< 5xx still, after the retries: it did not happen
  Unknown,        ///< the connection ended before an answer: it may have happened
  NotSent,        ///< no connection at all, or called off: it did not happen
};

struct ApiError {
  ErrorKind kind = ErrorKind::Unknown;
  int http_status = 0;
  std::string reason;   ///< Status.reason, "AlreadyExists"
  std::string message;  ///< for people
  std::optional<std::chrono::milliseconds> retry_after{};
};

/// A value or the reason why there is none.
template <typename T>
class Result {
 public:
  Result(T value) : content_(std::move(value)) {}         // NOLINT: implicit, so that functions return either
  Result(ApiError error) : content_(std::move(error)) {}  // NOLINT
  [[nodiscard]] bool ok() const { return content_.index() == 0; }
  explicit operator bool() const { return ok(); }
  [[nodiscard]] const T& value() const { return std::get<0>(content_); }
  [[nodiscard]] T& value() { return std::get<0>(content_); }
  [[nodiscard]] const ApiError& error() const { return std::get<1>(content_); }

 private:
  std::variant<T, ApiError> content_;
};

}  // namespace trainyard::kube
