#pragma once

#include <memory>

#include "tensor/device.h"

namespace trainyard {

/// A point in a stream, as an Event is, of which the device keeps the time.
class Moment {
 public:
  /// All that the thread's current stream of `device` has been given by now.
  explicit Moment(Device device);

  [[nodiscard]] bool has_passed() const;
  /// The time between two moments on the device's clock; both are of one device and have passed. Throws DeviceError
  /// where the device has failed.
  [[nodiscard]] double milliseconds_since(const Moment& earlier) const;

 private:
  struct Drop {
    int device;
    void operator()(void* event) const noexcept;
  };
  std::unique_ptr<void, Drop> event_;
};

}  // namespace trainyard
