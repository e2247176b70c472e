#pragma once

#include <memory>
#include <string>

#include "tensor/caching_allocator.h"
#include "tensor/device.h"
#include "tensor/memory.h"

namespace trainyard {

/// The memory of one device, or pinned host memory: an allocator, and what is held by kind. Any thread may call any
/// function.
class DeviceMemory {
 public:
  DeviceMemory(std::string name, std::unique_ptr<MemorySource> source)
      : name_(std::move(name)), source_(std::move(source)), allocator_(*source_) {}

  /// Memory for `stream`. Throws OutOfMemoryError, with a table of what holds the memory.
  void* allocate(size_t bytes, MemoryKind kind, StreamId stream);
  void free(void* address, size_t bytes, MemoryKind kind) noexcept;
  /// Nothing is given out any more, and what is freed stays as it is.
  void seal() { is_sealed_ = true; }
  /// It does what CachingAllocator's does.
  std::shared_ptr<StreamUse> used_on(void* address, StreamId stream);

  /// From now on what is MemoryKind::Gathered comes from `source`, which outlives this and is always the same, in
  /// Segments::Own; null: from where everything comes. Nobody uses this memory meanwhile.
  void gather_in(MemorySource* source);

  /// The allocator of all kinds, or of all but what gather_in() set apart.
  [[nodiscard]] CachingAllocator& allocator() { return allocator_; }
  /// The statistics of everything.
  [[nodiscard]] CachingAllocator::Statistics statistics() const;
  /// The ledger of all ranks of this process.
  [[nodiscard]] MemoryLedger& ledger() { return ledger_; }

 private:
  [[nodiscard]] CachingAllocator& allocator_of(const void* address);

  std::string name_;
  std::unique_ptr<MemorySource> source_;
  CachingAllocator allocator_;
  std::unique_ptr<CachingAllocator> gathered_;
  bool gathers_apart_ = false;
  MemoryLedger ledger_;
  bool is_sealed_ = false;
};

/// The end of what `stream`, a device's, has been given up to now.
std::unique_ptr<Fence> fence_of(StreamId stream);

/// The memory of a CUDA device. Throws as require_device(). It lasts until the process ends, as the driver may be gone
/// before a destructor runs.
DeviceMemory& memory_of(Device device);

/// While it lives, what this thread allocates on `device` comes out of `memory`, null: out of memory_of(). Scopes nest.
class DeviceMemoryScope {
 public:
  DeviceMemoryScope(Device device, std::shared_ptr<DeviceMemory> memory);
  ~DeviceMemoryScope();
  DeviceMemoryScope(const DeviceMemoryScope&) = delete;
  DeviceMemoryScope& operator=(const DeviceMemoryScope&) = delete;

 private:
  Device outer_device_;
  std::shared_ptr<DeviceMemory> outer_;
};

/// That of the scope of this thread, else memory_of(), which nobody owns.
std::shared_ptr<DeviceMemory> current_memory_of(Device device);

/// Host memory that copies to and from devices run over without a stop in between. Only where there is an accelerator.
std::shared_ptr<DeviceMemory> pinned_memory();

/// What this process holds of a device's memory; of the host's, and in a dry run, what is resident.
size_t process_bytes(Device device);

struct OutOfMemory {
  std::string where;  ///< "cuda:0"
  size_t bytes = 0;   ///< asked for
  MemoryKind kind = MemoryKind::Other;
  CachingAllocator::Statistics statistics;
  MemoryUse held;
  MemoryRoom room = {};
};

/// "cuda:0: out of memory: 1.5 GiB for activations do not fit; this process holds 78.1 GiB, …". What would take less
/// depends on what is done, and is not in it.
std::string describe(const OutOfMemory& failure);

}  // namespace trainyard
