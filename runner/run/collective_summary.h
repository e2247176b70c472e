#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "comm/communicator.h"
#include "common/mutex.h"

namespace trainyard::train {

/// What a rank's collectives came to since the last look, by name. Any thread may call.
class CollectiveCounts {
 public:
  struct Total {
    int64_t calls = 0;
    uint64_t bytes = 0;
    std::chrono::nanoseconds took{};
  };
  using Totals = std::map<std::string, Total>;                       ///< by "all-gather"
  using Sizes = std::map<std::pair<std::string, size_t>, int64_t>;  ///< calls by name and bytes

  void add(const comm::CollectiveRecord& record);
  /// What there was, and begins anew.
  std::pair<Totals, Sizes> take();

 private:
  static constexpr size_t kMostSizes = 1024;  ///< further ones count in the totals alone
  Mutex mutex_;
  Totals totals_ GUARDED_BY(mutex_);
  Sizes sizes_ GUARDED_BY(mutex_);
};

/// "all-gather 6 x 65,536 bytes, reduce-scatter 2 x 65,536 bytes", the largest first; at most eight sizes.
std::string text_of(const CollectiveCounts::Sizes& sizes);
/// "all-gather 60 times, 3,932,160 bytes, 12.0 ms a step; …"
std::string text_of(const CollectiveCounts::Totals& totals, int64_t steps);

/// What NCCL_DEBUG=INFO asks for whatever carries the collectives, at a bounded rate: the sizes of the first step, then
/// a sum and the memory for each line of the log. Made and ended while nothing is in flight.
class CollectiveSummary {
 public:
  explicit CollectiveSummary(comm::Communicator& world);
  ~CollectiveSummary() { world_.on_collective(before_); }
  CollectiveSummary(const CollectiveSummary&) = delete;
  CollectiveSummary& operator=(const CollectiveSummary&) = delete;

  /// Which collectives of which size the first step had that it is told of. "" of every later step.
  std::string first_step(int64_t step);
  /// A text for a line of the log.
  std::string at_line(int64_t step, uint64_t memory_bytes);

 private:
  comm::Communicator& world_;
  std::shared_ptr<CollectiveCounts> counts_ = std::make_shared<CollectiveCounts>();
  comm::CollectiveObserver before_;
  CollectiveCounts::Totals since_line_;
  bool has_told_sizes_ = false;
  int64_t steps_ = 0;  ///< since the last line
};

}  // namespace trainyard::train
