#pragma once

#include <algorithm>
#include <chrono>
#include <random>

namespace trainyard::kube {

/// Exponential with jitter: the n-th wait is between a half and the whole of first * 2^n, at most `longest`.
class Backoff {
 public:
  using milliseconds = std::chrono::milliseconds;
  Backoff(milliseconds first, milliseconds longest) : first_(first), longest_(longest) {}

  template <typename Generator>
  [[nodiscard]] milliseconds next(Generator& random) {
    const milliseconds whole = std::min(longest_, first_ * (int64_t{1} << std::min(failures_++, 20)));
    return milliseconds(std::uniform_int_distribution<int64_t>(whole.count() / 2, whole.count())(random));
  }
  void reset() { failures_ = 0; }
  [[nodiscard]] int failures() const { return failures_; }

 private:
  milliseconds first_, longest_;
  int failures_ = 0;
};

}  // namespace trainyard::kube
