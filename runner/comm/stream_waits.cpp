#include "comm/stream_waits.h"

namespace trainyard::comm {
namespace {

thread_local StreamWaits* t_noted_by = nullptr;

}  // namespace

StreamWaits::StreamWaits(Device device)
    : device_(device), stream_(current_stream(device)), outer_(std::exchange(t_noted_by, this)) {}
StreamWaits::~StreamWaits() {
  t_noted_by = outer_;
}

void StreamWaits::gate(const Event& event, Device device) {
  StreamWaits* const noted_by = t_noted_by;
  if (!noted_by || current_stream(device) != noted_by->stream_) return event.gate();
  Moment from(device);
  event.gate();
  noted_by->waits_.emplace_back(std::move(from), Moment(device));
}

}  // namespace trainyard::comm
