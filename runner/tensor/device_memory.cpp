#include "tensor/device_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "tensor/accelerator.h"
#include "tensor/by_device.h"
#include "tensor/dry_run.h"

namespace trainyard {
namespace {

class EventFence final : public Fence {
 public:
  explicit EventFence(StreamId stream) : device_(stream.device), event_(accelerator()->record(stream)) {}
  ~EventFence() override { accelerator()->drop_event(device_, event_); }
  EventFence(const EventFence&) = delete;
  EventFence& operator=(const EventFence&) = delete;
  bool has_passed() override { return accelerator()->has_passed(device_, event_); }
  void wait() override { accelerator()->wait(device_, event_); }

 private:
  int device_;
  void* event_;
};

class DeviceSource final : public MemorySource {
 public:
  explicit DeviceSource(int index) : index_(index) {}
  void* take(size_t bytes) override { return accelerator()->take_memory(index_, bytes); }
  void give_back(void* segment) noexcept override { accelerator()->give_memory_back(index_, segment); }
  std::unique_ptr<Fence> fence(StreamId stream) override { return fence_of(stream); }
  MemoryRoom room() override { return accelerator()->room(index_); }

 private:
  int index_;
};

class PinnedSource final : public MemorySource {
 public:
  void* take(size_t bytes) override { return accelerator()->take_pinned(bytes); }
  void give_back(void* segment) noexcept override { accelerator()->give_pinned_back(segment); }
  std::unique_ptr<Fence> fence(StreamId stream) override { return fence_of(stream); }
};

struct Lent {
  Device device;
  std::shared_ptr<DeviceMemory> memory = nullptr;
};
thread_local Lent t_lent;

std::shared_ptr<DeviceMemory> unowned(DeviceMemory& memory) {
  return {std::shared_ptr<void>(), &memory};
}

}  // namespace

std::unique_ptr<Fence> fence_of(StreamId stream) {
  return std::make_unique<EventFence>(stream);
}

void* DeviceMemory::allocate(size_t bytes, MemoryKind kind, StreamId stream) {
  const bool is_apart = gathers_apart_ && kind == MemoryKind::Gathered;
  CachingAllocator& chosen = is_apart ? *gathered_ : allocator_;
  void* address = chosen.allocate(bytes, stream);
  if (CachingAllocator* const other = is_apart ? &allocator_ : gathered_.get(); !address && other) {
    other->trim();
    address = chosen.allocate(bytes, stream);
  }
  if (!address) throw OutOfMemoryError(describe({name_, bytes, kind, statistics(), ledger_.held(), source_->room()}));
  ledger_.add(bytes, kind);
  return address;
}

void DeviceMemory::free(void* address, size_t bytes, MemoryKind kind) noexcept {
  ledger_.remove(bytes, kind);
  if (!is_sealed_) allocator_of(address).free(address);
}

std::shared_ptr<StreamUse> DeviceMemory::used_on(void* address, StreamId stream) {
  return allocator_of(address).used_on(address, stream);
}

void DeviceMemory::gather_in(MemorySource* source) {
  if (source && !gathered_) gathered_ = std::make_unique<CachingAllocator>(*source, Segments::Own);
  gathers_apart_ = source != nullptr;
}

CachingAllocator::Statistics DeviceMemory::statistics() const {
  CachingAllocator::Statistics sum = allocator_.statistics();
  if (!gathered_) return sum;
  const CachingAllocator::Statistics gathered = gathered_->statistics();
  sum.in_use += gathered.in_use, sum.most_in_use += gathered.most_in_use;
  sum.reserved += gathered.reserved, sum.most_reserved += gathered.most_reserved;
  sum.largest_free = std::max(sum.largest_free, gathered.largest_free);
  sum.segments += gathered.segments;
  return sum;
}

CachingAllocator& DeviceMemory::allocator_of(const void* address) {
  return gathered_ && gathered_->owns(address) ? *gathered_ : allocator_;
}

DeviceMemory& memory_of(Device device) {
  static auto& memories = *new ByDevice<DeviceMemory>;  // never destroyed: see the header
  require_device(device);
  return memories.of(device, to_string(device), std::make_unique<DeviceSource>(device.index));
}

DeviceMemoryScope::DeviceMemoryScope(Device device, std::shared_ptr<DeviceMemory> memory)
    : outer_device_(t_lent.device), outer_(std::exchange(t_lent.memory, std::move(memory))) {
  t_lent.device = device;
}
DeviceMemoryScope::~DeviceMemoryScope() {
  t_lent = {outer_device_, std::move(outer_)};
}

std::shared_ptr<DeviceMemory> current_memory_of(Device device) {
  return t_lent.memory && t_lent.device == device ? t_lent.memory : unowned(memory_of(device));
}

std::shared_ptr<DeviceMemory> pinned_memory() {
  static auto& memory = *new DeviceMemory("pinned host memory", std::make_unique<PinnedSource>());
  return unowned(memory);
}

size_t process_bytes(Device device) {
  const bool is_on_host = device.kind == DeviceKind::Cpu || dry_run();
  return is_on_host ? resident_bytes() : memory_of(device).statistics().reserved;
}

std::string describe(const OutOfMemory& failure) {
  std::vector<MemoryKind> kinds;
  for (size_t kind = 0; kind < kMemoryKinds; ++kind)
    if (failure.held.of[kind] > 0) kinds.push_back(static_cast<MemoryKind>(kind));
  std::ranges::stable_sort(kinds, std::greater{}, [&](MemoryKind kind) { return failure.held[kind]; });
  std::string table;
  for (const MemoryKind kind : kinds)
    table += fmt::format("{}{} {}", table.empty() ? "" : ", ", name_of(kind), human_bytes(failure.held[kind]));
  const CachingAllocator::Statistics& seen = failure.statistics;
  const MemoryRoom& room = failure.room;
  const size_t accounted = std::min(room.free + seen.reserved, room.total);
  const std::string others = room.total == 0
                                 ? ""
                                 : fmt::format("; the driver and other processes hold {} of its {}",
                                               human_bytes(room.total - accounted), human_bytes(room.total));
  return fmt::format(
      "{}: out of memory: {} for {} do not fit; this process holds {}, of which {} in use ({}), the largest free piece "
      "{}{}",
      failure.where, human_bytes(failure.bytes), name_of(failure.kind), human_bytes(seen.reserved),
      human_bytes(seen.in_use), table.empty() ? "nothing" : table, human_bytes(seen.largest_free), others);
}

}  // namespace trainyard
