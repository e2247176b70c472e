#pragma once

#include <optional>

#include "tensor/tensor.h"

namespace trainyard::comm {

/// The bytes of a tensor for a backend that moves host memory: its own, or those of a pinned copy where it lies on a
/// device.
class HostView {
 public:
  enum class Use { Read, Written, Both };

  /// On the thread that issues the collective: what is to be read is copied behind what its current stream was given.
  HostView(const Tensor& tensor, Use use);

  /// From here on on the thread that runs it. Waits for that copy; for the memory of what is only written too, which
  /// work on the device may still hold.
  [[nodiscard]] std::span<std::byte> bytes();
  /// The device has what was written, whatever stream reads it next.
  void give_back();

 private:
  Tensor tensor_;
  Use use_;
  Tensor pinned_;  // undefined: the tensor is on the host
  std::optional<Event> issued_;
};

}  // namespace trainyard::comm
