#pragma once

#include <string>

#include "rendezvous/place.h"

namespace trainyard::launch {

/// While it lives, NVIDIA's DCGM leaves the profiling counters of this node's GPUs alone, which it and a profiler
/// cannot have at once: `dcgmi profile --pause`, and `--resume` at the end. Does nothing where no dcgmi is in PATH.
/// Where that fails, or takes longer than 10 s, stderr says so.
class DcgmPause {
 public:
  explicit DcgmPause(const rendezvous::Environment& environment);
  ~DcgmPause();
  DcgmPause(const DcgmPause&) = delete;
  DcgmPause& operator=(const DcgmPause&) = delete;

 private:
  bool profile(const std::string& flag) noexcept;

  const rendezvous::Environment& environment_;
  std::string program_;  // empty: there is none
  bool is_paused_ = false;
};

}  // namespace trainyard::launch
