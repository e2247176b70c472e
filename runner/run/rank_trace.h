#pragma once

#include <filesystem>
#include <optional>

#include "comm/communicator.h"
#include "metrics/trace.h"
#include "tensor/device_trace.h"

namespace trainyard::train {

/// What a rank does while this lives, on tracks of their own: what the thread that made it computes ("compute"), the
/// communicator's collectives ("communication"; who looked on before still does), and what a GPU does, a track for each
/// of its streams. Where nothing can look on there, a warning says so once a process.
///   Made and ended by the thread that trains, while no collective is in flight.
class RankTrace {
 public:
  RankTrace(comm::Communicator& world, Device device);
  ~RankTrace() { world_.on_collective(before_); }
  RankTrace(const RankTrace&) = delete;
  RankTrace& operator=(const RankTrace&) = delete;

  /// Waits for the device; once. Throws std::filesystem::filesystem_error.
  void write(const std::filesystem::path& path);

 private:
  void look_at_collectives();
  void add_device();

  comm::Communicator& world_;
  const Device device_;
  metrics::Trace trace_;
  const metrics::AttachTrace attach_;
  comm::CollectiveObserver before_;
  std::optional<DeviceTrace> of_device_;
};

}  // namespace trainyard::train
