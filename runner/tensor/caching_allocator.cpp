#include "tensor/caching_allocator.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace trainyard {
namespace {

constexpr size_t kBlockStep = 512;
constexpr size_t kMostSmall = size_t{1} << 20, kSmallSegment = size_t{2} << 20;
constexpr size_t kMostShared = size_t{10} << 20, kSharedSegment = size_t{20} << 20;
constexpr size_t kSegmentStep = size_t{2} << 20;

constexpr size_t round_up(size_t bytes, size_t step) {
  return (bytes + step - 1) / step * step;
}

constexpr size_t segment_bytes(size_t block_bytes) {
  if (block_bytes <= kMostSmall) return kSmallSegment;
  return block_bytes < kMostShared ? kSharedSegment : round_up(block_bytes, kSegmentStep);
}

/// What is left of a block is worth a block of its own: less of a large one would serve nobody.
constexpr bool is_worth_splitting(size_t rest, bool is_small) {
  return is_small ? rest >= kBlockStep : rest > kMostSmall;
}

}  // namespace

CachingAllocator::~CachingAllocator() {
  for (const auto& [segment, _] : segments_) source_.give_back(const_cast<void*>(segment));
}

void* CachingAllocator::allocate(size_t bytes, StreamId stream) {
  const size_t needed = round_up(std::max<size_t>(bytes, 1), has_own_segments_ ? kSegmentStep : kBlockStep);
  const MutexLock lock(mutex_);
  collect(Wait::No);
  std::byte* block = find(needed, stream);
  if (!block) block = grow(needed, stream);
  if (!block) {  // the last resort costs a stop of the streams; without it the run would end
    collect(Wait::Yes);
    block = find(needed, stream);
  }
  if (!block) {
    give_back_unused();
    block = grow(needed, stream);
  }
  return block ? use(block, needed) : nullptr;
}

std::byte* CachingAllocator::find(size_t bytes, StreamId stream) const {
  const bool small = bytes <= kMostSmall;
  const auto found = free_.lower_bound({small, stream, bytes, nullptr});
  if (found == free_.end() || found->is_small != small || found->stream != stream) return nullptr;
  return has_own_segments_ && found->bytes != bytes ? nullptr : found->address;
}

std::byte* CachingAllocator::grow(size_t bytes, StreamId stream) {
  const size_t size = has_own_segments_ ? bytes : segment_bytes(bytes);
  auto* const segment = static_cast<std::byte*>(source_.take(size));
  if (!segment) return nullptr;
  segments_.emplace(segment, Segment{size, bytes <= kMostSmall});
  const auto block = blocks_.emplace(segment, Block{.bytes = size, .segment = segment, .stream = stream}).first;
  free_.insert(key_of(*block));
  statistics_.reserved += size;
  statistics_.most_reserved = std::max(statistics_.most_reserved, statistics_.reserved);
  return segment;
}

void* CachingAllocator::use(std::byte* address, size_t bytes) {
  const auto found = blocks_.find(address);
  free_.erase(key_of(*found));
  Block& block = found->second;
  if (const size_t rest = block.bytes - bytes; is_worth_splitting(rest, is_small(block))) {
    block.bytes = bytes;
    const Block second{.bytes = rest, .segment = block.segment, .stream = block.stream};
    free_.insert(key_of(*blocks_.emplace(address + bytes, second).first));
  }
  block.in_use = true;
  statistics_.in_use += block.bytes;
  statistics_.most_in_use = std::max(statistics_.most_in_use, statistics_.in_use);
  return address;
}

void CachingAllocator::free(void* address) noexcept {
  const MutexLock lock(mutex_);
  const auto found = blocks_.find(static_cast<std::byte*>(address));
  Block& block = found->second;
  statistics_.in_use -= block.bytes;
  std::set<StreamId> streams;
  for (const auto& use : std::exchange(block.uses, {}))
    if (!use->is_over()) streams.insert(use->stream());
  if (streams.empty()) return make_free(found);
  Pending pending{found->first, {}};
  try {
    for (const StreamId stream : streams) pending.fences.push_back(source_.fence(stream));
  } catch (...) {
    return;  // the device has failed, which the next call tells; the block is left as it is and not used again
  }
  pending_.push_back(std::move(pending));
}

std::shared_ptr<StreamUse> CachingAllocator::used_on(void* address, StreamId stream) {
  const MutexLock lock(mutex_);
  Block& block = blocks_.find(static_cast<std::byte*>(address))->second;
  if (stream == block.stream) return nullptr;
  // Of those that nobody can end any more one is enough: a block that is never freed is used without end.
  std::erase_if(block.uses, [stream](const std::shared_ptr<StreamUse>& use) {
    return use->is_over() || (use->stream() == stream && use.use_count() == 1);
  });
  return block.uses.emplace_back(std::make_shared<StreamUse>(stream, block.stream));
}

bool CachingAllocator::owns(const void* address) const {
  const MutexLock lock(mutex_);
  const auto found = blocks_.find(static_cast<std::byte*>(const_cast<void*>(address)));
  return found != blocks_.end() && found->second.in_use;
}

void CachingAllocator::make_free(Blocks::iterator block) {
  const auto join = [&](Blocks::iterator first, Blocks::iterator second) REQUIRES(mutex_) {
    first->second.bytes += second->second.bytes;
    blocks_.erase(second);
    return first;
  };
  const auto is_free_neighbour = [&](Blocks::iterator other) {
    return !other->second.in_use && other->second.segment == block->second.segment;
  };
  block->second.in_use = false;
  if (const auto after = std::next(block); after != blocks_.end() && is_free_neighbour(after)) {
    free_.erase(key_of(*after));
    join(block, after);
  }
  if (block != blocks_.begin() && is_free_neighbour(std::prev(block))) {
    const auto before = std::prev(block);
    free_.erase(key_of(*before));
    block = join(before, block);
  }
  free_.insert(key_of(*block));
}

/// Frees the pending blocks whose streams have come past; with Wait::Yes all of them.
void CachingAllocator::collect(Wait wait) {
  const auto is_done = [wait](const std::unique_ptr<Fence>& fence) {
    if (wait == Wait::Yes) fence->wait();
    return wait == Wait::Yes || fence->has_passed();
  };
  for (auto each = pending_.begin(); each != pending_.end();) {
    if (!std::ranges::all_of(each->fences, is_done)) {
      ++each;
      continue;
    }
    make_free(blocks_.find(each->address));
    each = pending_.erase(each);
  }
}

void CachingAllocator::give_back_unused() noexcept {
  for (auto each = segments_.begin(); each != segments_.end();) {
    const auto block = blocks_.find(static_cast<std::byte*>(const_cast<void*>(each->first)));
    if (block->second.in_use || block->second.bytes != each->second.bytes) {
      ++each;
      continue;
    }
    free_.erase(key_of(*block));
    source_.give_back(block->first);
    statistics_.reserved -= each->second.bytes;
    blocks_.erase(block);
    each = segments_.erase(each);
  }
}

void CachingAllocator::trim() noexcept {
  const MutexLock lock(mutex_);
  try {
    collect(Wait::Yes);
  } catch (...) {  // the device has failed: what it still works in stays
  }
  give_back_unused();
}

CachingAllocator::Statistics CachingAllocator::statistics() const {
  const MutexLock lock(mutex_);
  Statistics now = statistics_;
  now.segments = segments_.size();
  for (const FreeBlock& block : free_) now.largest_free = std::max(now.largest_free, block.bytes);
  return now;
}

void CachingAllocator::restart_peak() {
  const MutexLock lock(mutex_);
  statistics_.most_in_use = statistics_.in_use;
  statistics_.most_reserved = statistics_.reserved;
}

}  // namespace trainyard
