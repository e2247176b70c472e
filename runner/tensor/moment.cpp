#include "tensor/moment.h"

#include "tensor/accelerator.h"

namespace trainyard {

Moment::Moment(Device device)
    : event_(accelerator()->record(current_stream(device), Accelerator::Keeps::Time), Drop{device.index}) {}

void Moment::Drop::operator()(void* event) const noexcept {
  accelerator()->drop_event(device, event);
}

bool Moment::has_passed() const {
  return accelerator()->has_passed(event_.get_deleter().device, event_.get());
}

double Moment::milliseconds_since(const Moment& earlier) const {
  return accelerator()->milliseconds_between(event_.get_deleter().device, earlier.event_.get(), event_.get());
}

}  // namespace trainyard
