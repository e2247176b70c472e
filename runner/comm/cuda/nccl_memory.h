#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>

#include "comm/cuda/nccl_group.h"
#include "common/mutex.h"
#include "tensor/device_memory.h"
#include "tensor/tensor.h"

namespace trainyard::comm {

/// Memory of one device that NCCL maps to its peers, so that collectives read and write it where it lies. NCCL asks for
/// more than memory of its own: a segment is registered with every communicator that uses it, once; and where one rank
/// brings a registered buffer to a collective, all do, each at the same place from where its registration begins.
/// Hence Segments::Own, and all of a kind of tensor or none (DeviceMemory::gather_in). Any thread may call any
/// function.
class NcclMemory final : public MemorySource {
 public:
  explicit NcclMemory(int device) : device_(device) {}

  void* take(size_t bytes) override;
  void give_back(void* segment) noexcept override;
  std::unique_ptr<Fence> fence(StreamId stream) override { return fence_of(stream); }

  /// Before a collective of `group`: what of `tensors` lies here is registered with it, if it is not yet. Local; the
  /// device does not wait.
  ncclResult_t register_with(const std::shared_ptr<NcclGroup>& group, std::span<const Tensor> tensors);
  /// Before the group ends in good order; nothing of it is in flight. Of one that is aborted NCCL forgets them itself.
  void deregister_from(const std::shared_ptr<NcclGroup>& group);

 private:
  struct Segment {
    size_t bytes;
    /// NCCL's handle for each group; of those that are no more, too.
    std::map<std::weak_ptr<NcclGroup>, void*, std::owner_less<>> handles{};
  };

  const int device_;
  Mutex mutex_;
  std::map<std::byte*, Segment> segments_ GUARDED_BY(mutex_);
};

/// That of a device: it lasts as memory_of() does.
NcclMemory& nccl_memory_of(Device device);

}  // namespace trainyard::comm
