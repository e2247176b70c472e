#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace trainyard {

/// One thing that a device did.
struct DeviceActivity {
  using Clock = std::chrono::steady_clock;
  std::string name;     ///< of a kernel, in C++ and without its parameters; "copy host to device"; "fill"
  int64_t bytes = 0;    ///< of a copy or a fill
  uint32_t stream = 0;  ///< the driver's number of the stream
  Clock::time_point begin, end;
};

/// What a device did in a time.
struct DeviceActivities {
  std::vector<DeviceActivity> activities;
  size_t dropped = 0;  ///< past the first half million
};

}  // namespace trainyard
