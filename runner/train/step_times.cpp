#include "train/step_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "comm/communicator.h"

namespace trainyard::train {
namespace {

constexpr double kStandsOut = 1.5;       // times the median; what threads on shared cores differ by is less
constexpr int kFewestSteps = 5;          // to judge by: first steps differ for many reasons
constexpr double kLeastDifference = 10;  // milliseconds: what a busy machine adds here and there

double milliseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

/// The upper one of two in the middle.
double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

std::optional<SlowRank> slow_rank(std::span<const double> milliseconds_by_rank) {
  if (milliseconds_by_rank.size() < 2) return std::nullopt;
  const auto slowest = std::ranges::max_element(milliseconds_by_rank);
  const auto rank = slowest - milliseconds_by_rank.begin();
  std::vector<double> others(milliseconds_by_rank.begin(), milliseconds_by_rank.end());
  others.erase(others.begin() + rank);
  const SlowRank found{static_cast<int>(rank), *slowest, median(std::move(others))};
  if (found.milliseconds < kStandsOut * found.others || found.milliseconds - found.others < kLeastDifference)
    return std::nullopt;
  return found;
}

void SlowRankNews::step(const std::optional<SlowRank>& slow) {
  ++steps_;
  if (!slow) return;
  ++times_[slow->rank];
  last_ = *slow;
}

std::string SlowRankNews::at_line() {
  if (steps_ < kFewestSteps) return "";
  const auto most = std::ranges::max_element(times_, {}, &std::pair<const int, int>::second);
  std::optional<int> slowest;
  if (most != times_.end() && 2 * most->second > steps_) slowest = most->first;
  times_.clear();
  steps_ = 0;
  if (std::exchange(named_, slowest) == slowest) return "";
  if (!slowest) return "no rank stands out as slow any more";
  return fmt::format(
      "rank {} is slow: the others wait for it in most steps, in the last one {:.0f} ms of its own where their median "
      "is {:.0f} ms; look at its host, or at its trace (metrics.profile_interval)",
      *slowest, last_.milliseconds, last_.others);
}

Stopwatch::Stopwatch() : last_(std::chrono::steady_clock::now()), waited_(comm::waited_by_this_thread()) {}

Stopwatch::Lap Stopwatch::lap() {
  const auto now = std::chrono::steady_clock::now();
  const auto waited_until_now = comm::waited_by_this_thread();
  const auto passed = now - last_, waited = waited_until_now - waited_;
  last_ = now;
  waited_ = waited_until_now;
  return {milliseconds(passed - waited), milliseconds(waited)};
}

}  // namespace trainyard::train
