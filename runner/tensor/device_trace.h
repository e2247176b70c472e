#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tensor/device.h"

namespace trainyard {

/// One thing that a device did.
struct DeviceActivity {
  using Clock = std::chrono::steady_clock;
  std::string name;     ///< of a kernel, in C++ and without its parameters; "copy host to device"; "fill"
  int64_t bytes = 0;    ///< of a copy or a fill
  uint32_t stream = 0;  ///< the driver's number of the stream
  Clock::time_point begin, end;
};

/// While it lives, what a device does is written down, on all of its streams and whoever gave it to do.
class DeviceTrace {
 public:
  struct Seen {
    std::vector<DeviceActivity> activities;
    size_t dropped = 0;  ///< past the first half million
  };

  /// Throws InputError where this machine has nothing that looks on (CUPTI), saying what is missing.
  explicit DeviceTrace(Device device);
  ~DeviceTrace();
  DeviceTrace(const DeviceTrace&) = delete;
  DeviceTrace& operator=(const DeviceTrace&) = delete;

  /// What the device has done since this was made; waits until this thread's current stream is done.
  Seen read();

 private:
  Device device_;
  DeviceActivity::Clock::time_point begun_;
};

}  // namespace trainyard
