#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "tensor/device_memory.h"
#include "tensor/tensor.h"

namespace trainyard {

/// Work of a device that is captured once and done any number of times, each at one call of the host (a CUDA
/// graph). The same kernels work on the same addresses every time: whoever does it again puts new values there before.
/// One thread.
class StreamGraph {
 public:
  /// Calls `work`, which does nothing yet: what it gives the current stream of `device` is captured. Memory that it
  /// allocates there is the graph's as long as that lives, taken from the device's.
  ///   `results`: what `work` fills. Each has its memory there again after a launch(), whether or not it was released.
  ///   Who works with them, or with what the graph reads, on other streams sees to the order.
  /// Throws what `work` does; std::logic_error where that copies between host and device, std::runtime_error where it
  /// waits for the device.
  StreamGraph(Device device, const std::function<void()>& work, std::vector<std::shared_ptr<Storage>> results);
  ~StreamGraph();
  StreamGraph(const StreamGraph&) = delete;
  StreamGraph& operator=(const StreamGraph&) = delete;

  /// Gives the work to the thread's current stream of the device.
  void launch();
  /// How many kernels, copies and the like it is.
  [[nodiscard]] size_t operations() const { return operations_; }

  // These are for the graph that this thread captures; without one they do what they say all the same.
  static bool is_capturing();
  /// Does `work` now, before the graph's, and in memory that is not the graph's: makes tables that it reads.
  static void outside(const std::function<void()>& work);
  /// What the graph reads and somebody else may drop stays as long as the graph.
  static void keep(const Tensor& tensor);

 private:
  class Source;
  class Outside;

  /// What a storage had when the work had been captured.
  struct Result {
    std::shared_ptr<Storage> storage;
    std::byte* address;
  };

  Device device_;
  StreamId outer_;  // of who makes it
  std::shared_ptr<DeviceMemory> memory_;
  std::vector<Tensor> kept_;
  std::vector<Result> results_;
  void* handle_ = nullptr;
  size_t operations_ = 0;
};

}  // namespace trainyard
