#pragma once

#include <utility>
#include <vector>

#include "tensor/device.h"
#include "tensor/moment.h"

namespace trainyard::comm {

/// How long a device's stream stands in waits for collectives, where the host does not: what waited_by_this_thread() is
/// of the host. While it lives it notes those that the thread which made it gives to its current stream of then.
class StreamWaits {
 public:
  explicit StreamWaits(Device device);
  ~StreamWaits();
  StreamWaits(const StreamWaits&) = delete;
  StreamWaits& operator=(const StreamWaits&) = delete;

  using Wait = std::pair<Moment, Moment>;  ///< from, until
  /// Those so far, once.
  [[nodiscard]] std::vector<Wait> take() { return std::exchange(waits_, {}); }

  /// event.gate(), as a wait for a collective.
  static void gate(const Event& event, Device device);

 private:
  const Device device_;
  const StreamId stream_;
  StreamWaits* const outer_;
  std::vector<Wait> waits_;
};

}  // namespace trainyard::comm
