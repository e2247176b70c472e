#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tensor/device_activity.h"
#include "tensor/device_types.h"

namespace trainyard {

/// While it lives, what a device does is written down, on all of its streams and whoever gave it to do.
class DeviceTrace {
 public:
  using Seen = DeviceActivities;

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
