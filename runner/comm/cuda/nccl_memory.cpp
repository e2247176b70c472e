#include "comm/cuda/nccl_memory.h"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include "base/error.h"
#include "tensor/by_device.h"
#include "tensor/cuda/check.h"

namespace trainyard::comm {
namespace {

/// A group that has ended meanwhile has nothing to deregister from.
void deregister(NcclGroup& group, void* handle) {
  static_cast<void>(group.call([handle](ncclComm_t comm) { return nccl().comm_deregister(comm, handle); }));
}

}  // namespace

void* NcclMemory::take(size_t bytes) {
  cuda::use(device_);
  void* segment = nullptr;
  const ncclResult_t result = nccl().mem_alloc(&segment, bytes);
  if (result == ncclUnhandledCudaError) {  // it has no other word for a device that is full
    static_cast<void>(cudaGetLastError());
    return nullptr;
  }
  if (result != ncclSuccess)
    throw InputError(
        fmt::format("NCCL has no memory for registered buffers: {}; try comm.user_buffers: false", describe(result)));
  const MutexLock lock(mutex_);
  segments_.emplace(static_cast<std::byte*>(segment), Segment{.bytes = bytes});
  return segment;
}

void NcclMemory::give_back(void* segment) noexcept {
  // Unlike cudaFree, ncclMemFree waits for nobody.
  if (cuda::try_to_use(device_) != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess) return;
  const MutexLock lock(mutex_);
  const auto found = segments_.find(static_cast<std::byte*>(segment));
  for (const auto& [group, handle] : found->second.handles)
    if (const auto there = group.lock()) deregister(*there, handle);
  segments_.erase(found);
  static_cast<void>(nccl().mem_free(segment));
}

ncclResult_t NcclMemory::register_with(const std::shared_ptr<NcclGroup>& group, std::span<const Tensor> tensors) {
  const MutexLock lock(mutex_);
  for (const Tensor& tensor : tensors) {
    const auto found = segments_.find(tensor.storage()->data());  // a segment is one storage's
    if (found == segments_.end() || found->second.handles.contains(group)) continue;
    void* handle = nullptr;
    const ncclResult_t result = group->call(
        [&](ncclComm_t comm) { return nccl().comm_register(comm, found->first, found->second.bytes, &handle); });
    if (result != ncclSuccess) return result;
    found->second.handles.emplace(group, handle);
  }
  return ncclSuccess;
}

void NcclMemory::deregister_from(const std::shared_ptr<NcclGroup>& group) {
  const MutexLock lock(mutex_);
  for (auto& [_, segment] : segments_)
    if (const auto found = segment.handles.find(group); found != segment.handles.end()) {
      deregister(*group, found->second);
      segment.handles.erase(found);
    }
}

NcclMemory& nccl_memory_of(Device device) {
  static auto& memories = *new ByDevice<NcclMemory>;  // never destroyed, as memory_of()
  return memories.of(device, device.index);
}

}  // namespace trainyard::comm
