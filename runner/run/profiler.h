#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "run/rank_trace.h"

namespace trainyard::train {

/// Traces the last `steps` steps before each multiple of `interval` into `<folder>/step-N.rank-R.json`: what this rank
/// does, for Perfetto. The newest `keep` files of a rank stay. For the thread that trains.
class Profiler {
 public:
  struct Options {
    std::filesystem::path folder;
    int64_t interval = 0;
    int64_t steps = 1;
    int64_t keep = 4;
  };
  Profiler(Options options, comm::Communicator& world, Device device);
  ~Profiler();

  /// So many steps are done; also called before the first. No collective is in flight.
  void steps_done(int64_t step);

 private:
  void end(int64_t step);
  [[nodiscard]] std::filesystem::path file_of(int64_t step) const;

  const Options options_;
  comm::Communicator& world_;
  const Device device_;
  std::optional<RankTrace> trace_;  // while one is under way
};

}  // namespace trainyard::train
