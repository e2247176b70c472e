#pragma once

#include <chrono>
#include <optional>
#include <random>

#include "kube/backoff.h"
#include "kube/result.h"

namespace trainyard::kube {

/// When one request is sent again. Pure but for its random numbers.
class Retry {
 public:
  /// After so many attempts, or when the next wait would end later than so long after the first, the error is passed
  /// on.
  static constexpr int kAttempts = 6;
  static constexpr int kAttemptsWhenTooMany = 12;
  static constexpr std::chrono::seconds kLongestInAll{60};

  /// The wait before the next attempt; none: `error` is the answer. `is_final` says that repeating cannot help.
  template <typename Generator>
  [[nodiscard]] std::optional<std::chrono::milliseconds> after(const ApiError& error, bool is_write, bool is_final,
                                                               std::chrono::steady_clock::duration elapsed,
                                                               Generator& random) {
    ++attempts_;
    if (is_final || !is_safe(error.kind, is_write)) return std::nullopt;
    if (attempts_ >= (error.kind == ErrorKind::TooMany ? kAttemptsWhenTooMany : kAttempts)) return std::nullopt;
    auto wait = backoff_.next(random);
    // All that were told "1 s" at once come back spread over a half of it more.
    if (error.retry_after)
      wait = std::max(wait, *error.retry_after + *error.retry_after * static_cast<int>(random() % 256) / 512);
    if (elapsed + wait > kLongestInAll) return std::nullopt;
    return wait;
  }

  [[nodiscard]] static bool is_safe(ErrorKind kind, bool is_write) {
    switch (kind) {
      case ErrorKind::TooMany:
      case ErrorKind::Server:
      case ErrorKind::NotSent:
        return true;
      case ErrorKind::Unknown:
        return !is_write;
      default:
        return false;
    }
  }
  [[nodiscard]] int attempts() const { return attempts_; }

 private:
  int attempts_ = 0;
  Backoff backoff_{std::chrono::milliseconds(100), std::chrono::seconds(5)};
};

}  // namespace trainyard::kube
