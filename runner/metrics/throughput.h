#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>

namespace trainyard::metrics {

using Clock = std::chrono::steady_clock;

/// Amounts over a time.
struct Rates {
  double tokens_per_second = 0;
  double samples_per_second = 0;
};

/// How fast training goes. Time comes in from outside. Checkpoints and validation are taken out with exclude(), so a
/// rate is that of training steps alone. For one thread.
class ThroughputMeter {
 public:
  explicit ThroughputMeter(Clock::time_point start) : last_(start) {}

  /// A step has ended at `now`, over all ranks. Returns the rates of this step.
  Rates step(Clock::time_point now, int64_t tokens, int64_t samples);

  /// So much of the time since the last step was no training.
  void exclude(Clock::duration spent) { excluded_ += spent; }

  /// Mean rates of the steps since this was last called: for the printed line.
  Rates since_last_line();

  /// Time for `steps_left` more, from the mean of the last steps; none before the second step, because the first one
  /// also allocates and warms up.
  [[nodiscard]] std::optional<std::chrono::seconds> remaining(int64_t steps_left) const;

 private:
  struct Amount {
    double seconds = 0;
    double tokens = 0;
    double samples = 0;
  };
  static Rates rates(const Amount& amount);

  Clock::time_point last_;
  Clock::duration excluded_{};
  Amount line_;
  std::deque<double> recent_;  ///< seconds of the last steps, without the first
  bool first_ = true;
};

}  // namespace trainyard::metrics
