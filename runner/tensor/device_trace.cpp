#include "tensor/device_trace.h"

#include <iterator>

#include "tensor/accelerator.h"

namespace trainyard {

DeviceTrace::DeviceTrace(Device device) : device_(device), begun_(DeviceActivity::Clock::now()) {
  require_device(device);
  accelerator()->begin_activities();
}

DeviceTrace::~DeviceTrace() {
  accelerator()->end_activities();
}

DeviceTrace::Seen DeviceTrace::read() {
  synchronize(device_);
  Seen seen = accelerator()->activities(device_.index);
  std::erase_if(seen.activities, [this](const DeviceActivity& each) { return each.begin < begun_; });
  return seen;
}

}  // namespace trainyard
