#include "metrics/throughput.h"

#include <algorithm>
#include <numeric>

namespace trainyard::metrics {
namespace {
constexpr size_t kRecentSteps = 50;
}

Rates ThroughputMeter::rates(const Amount& amount) {
  if (amount.seconds <= 0) return {};
  return {amount.tokens / amount.seconds, amount.samples / amount.seconds};
}

Rates ThroughputMeter::step(Clock::time_point now, int64_t tokens, int64_t samples) {
  const double seconds = std::max(0.0, std::chrono::duration<double>(now - last_ - excluded_).count());
  const Amount amount{seconds, static_cast<double>(tokens), static_cast<double>(samples)};
  last_ = now;
  excluded_ = {};
  line_ = {line_.seconds + amount.seconds, line_.tokens + amount.tokens, line_.samples + amount.samples};
  if (!first_) recent_.push_back(seconds);
  if (recent_.size() > kRecentSteps) recent_.pop_front();
  first_ = false;
  return rates(amount);
}

Rates ThroughputMeter::since_last_line() {
  const Rates result = rates(line_);
  line_ = {};
  return result;
}

std::optional<std::chrono::seconds> ThroughputMeter::remaining(int64_t steps_left) const {
  if (recent_.empty()) return std::nullopt;
  const double mean = std::accumulate(recent_.begin(), recent_.end(), 0.0) / static_cast<double>(recent_.size());
  const double seconds = mean * static_cast<double>(std::max<int64_t>(0, steps_left));
  constexpr double kLongest = 1e9;  // thirty years; past that the answer is no answer
  return std::chrono::seconds(static_cast<int64_t>(std::min(seconds, kLongest) + 0.5));
}

}  // namespace trainyard::metrics
