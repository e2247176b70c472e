#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tensor/device.h"
#include "tensor/tensor.h"

namespace trainyard {

/// Copies between the host and a device, and what belongs to them, beside what the thread's current stream of the
/// device is given meanwhile. Each thread has a stream for either direction, as a device copies both ways at once.
/// One thread. On a CPU the work is done at once.
class SideWork {
 public:
  enum class Direction : uint8_t { ToHost, ToDevice };

  SideWork() = default;
  /// Calls `work` with the stream of that direction as the current one, behind all that the current stream has been
  /// given. What it allocates is for itself alone.
  ///   `tensors`: what it shares with the current stream, whose memory was taken before, so that it is the current
  ///   stream's again after wait(). They are kept until then.
  SideWork(Direction direction, Device device, std::vector<Tensor> tensors, const std::function<void()>& work);
  SideWork(SideWork&&) noexcept = default;
  SideWork& operator=(SideWork&&) noexcept = default;

  [[nodiscard]] bool is_under_way() const { return !tensors_.empty(); }
  /// What the current stream is given from now on comes after the work. The host does not wait. No effect where that
  /// was said before.
  void wait();

 private:
  Device device_;
  std::vector<Tensor> tensors_;
  std::optional<Event> end_;
  std::optional<double> dry_end_;
  std::vector<std::shared_ptr<StreamUse>> uses_;
};

}  // namespace trainyard
