#pragma once

#include <algorithm>
#include <chrono>

namespace trainyard::kube {

/// So many requests a second, so many at once: --kube-api-qps and --kube-api-burst. Pure.
class TokenBucket {
 public:
  using Clock = std::chrono::steady_clock;
  TokenBucket(double per_second, double burst, Clock::time_point now)
      : per_second_(per_second), burst_(std::max(1.0, burst)), tokens_(burst_), filled_(now) {}

  /// Zero: taken. Else how long until there is one, and nothing is taken.
  [[nodiscard]] Clock::duration take(Clock::time_point now) {
    tokens_ = std::min(burst_, tokens_ + per_second_ * std::chrono::duration<double>(now - filled_).count());
    filled_ = now;
    if (tokens_ < 1) {
      const std::chrono::duration<double> wait((1 - tokens_) / per_second_);
      return std::chrono::ceil<std::chrono::microseconds>(wait) + std::chrono::microseconds(1);
    }
    tokens_ -= 1;
    return Clock::duration::zero();
  }

 private:
  double per_second_, burst_, tokens_;
  Clock::time_point filled_;
};

}  // namespace trainyard::kube
