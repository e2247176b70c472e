#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace trainyard::train {

/// Where a step's time went, in milliseconds. Their sum is about the step: of each part the longest of any rank, but of
/// communication the shortest. Ranks wait for the slowest one in their collectives; what even that one waits is the
/// network, and the rest is to be looked for in its other columns. Compute, communication and optimizer of a device are
/// those of the last step that it had told of by then, mostly the one before: 0 in the first.
struct StepTimes {
  double data_wait = 0;      ///< for the loader
  double compute = 0;        ///< forward and backward, without waits
  double communication = 0;  ///< waits for collectives: what is not hidden behind compute
  double optimizer = 0;      ///< of rank 0
  double checkpoint = 0;     ///< of rank 0: saving since the step before
};

/// A rank that the others wait for.
struct SlowRank {
  int rank = 0;
  double milliseconds = 0;  ///< its own in a step: data, compute, the update before
  double others = 0;        ///< the median of the others
};

/// The rank whose own time stands out: half as long again as the median of the others, and by 10 ms or more.
/// Nobody does in a world of one.
std::optional<SlowRank> slow_rank(std::span<const double> milliseconds_by_rank);

/// When to say so: a rank that stood out in most steps since it was last judged, once until another does or none.
class SlowRankNews {
 public:
  void step(const std::optional<SlowRank>& slow);
  /// A sentence for a line of the log; "" where there is nothing new, or fewer than five steps to judge by.
  std::string at_line();

 private:
  std::map<int, int> times_;  ///< steps since it was last judged in which a rank stood out
  int steps_ = 0;
  SlowRank last_;
  std::optional<int> named_;
};

/// Takes the time of one thread apart: what passed, and what of it was waiting for collectives.
class Stopwatch {
 public:
  Stopwatch();
  struct Lap {
    double own = 0;     ///< milliseconds outside of Work::wait()
    double waited = 0;  ///< milliseconds in it
  };
  /// Since the lap before.
  Lap lap();

 private:
  std::chrono::steady_clock::time_point last_;
  std::chrono::nanoseconds waited_;
};

}  // namespace trainyard::train
