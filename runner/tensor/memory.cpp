#include "tensor/memory.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <new>
#include <string>

#include "common/mutex.h"

namespace trainyard {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kCachedFrom = size_t{64} << 10;

size_t rounded(size_t bytes) {
  const size_t step = bytes < kCachedFrom ? kAlignment : size_t{4096};
  return (bytes + step - 1) / step * step;
}

/// Free blocks by size. A block serves a request of at least 7/8 of its size, so at most an eighth is wasted. Requests
/// that never come again, as where each batch has a length of its own, would pile blocks up: so the oldest go
/// where all blocks together would exceed what was ever in use at once by a quarter.
class HostCache {
 public:
  ~HostCache() { trim(); }

  void* take(size_t bytes) {
    const MutexLock lock(mutex_);
    const auto found = free_.lower_bound({bytes, 0});
    if (found == free_.end() || found->first.bytes - found->first.bytes / 8 > bytes) {
      make_room(bytes);
      return nullptr;
    }
    void* const address = found->second;
    note_use(address, found->first.bytes);
    forget(found);
    return address;
  }

  void remember(void* address, size_t bytes) {
    const MutexLock lock(mutex_);
    note_use(address, bytes);
  }

  void give(void* address) {
    const MutexLock lock(mutex_);
    const auto used = sizes_.find(address);
    const Key key{used->second, ++frees_};
    used_bytes_ -= key.bytes;
    free_bytes_ += key.bytes;
    by_age_.emplace(key.freed, free_.emplace(key, address).first);
    sizes_.erase(used);
  }

  void trim() {
    const MutexLock lock(mutex_);
    while (!by_age_.empty()) release_oldest();
  }

  size_t free_bytes() {
    const MutexLock lock(mutex_);
    return free_bytes_;
  }

 private:
  struct Key {
    size_t bytes;
    uint64_t freed;  ///< number of the call that freed it
    auto operator<=>(const Key&) const = default;
  };
  using Free = std::map<Key, void*>;

  void note_use(void* address, size_t bytes) REQUIRES(mutex_) {
    sizes_[address] = bytes;
    used_bytes_ += bytes;
    most_used_ = std::max(most_used_, used_bytes_);
  }

  void forget(Free::iterator block) REQUIRES(mutex_) {
    free_bytes_ -= block->first.bytes;
    by_age_.erase(block->first.freed);
    free_.erase(block);
  }

  void release_oldest() REQUIRES(mutex_) {
    const auto oldest = by_age_.begin()->second;
    std::free(oldest->second);
    forget(oldest);
  }

  void make_room(size_t bytes) REQUIRES(mutex_) {
    const size_t limit = std::max(most_used_, used_bytes_ + bytes) / 4 * 5;
    while (!by_age_.empty() && used_bytes_ + bytes + free_bytes_ > limit) release_oldest();
  }

  Mutex mutex_;
  Free free_ GUARDED_BY(mutex_);
  std::map<uint64_t, Free::iterator> by_age_ GUARDED_BY(mutex_);
  /// The true size of each block in use, which may be above what was asked.
  std::map<void*, size_t> sizes_ GUARDED_BY(mutex_);
  size_t used_bytes_ GUARDED_BY(mutex_) = 0, most_used_ GUARDED_BY(mutex_) = 0;
  size_t free_bytes_ GUARDED_BY(mutex_) = 0;
  uint64_t frees_ GUARDED_BY(mutex_) = 0;
};

HostCache& host_cache() {
  static HostCache cache;  // the one allocator of the process, as malloc is
  return cache;
}

size_t status_bytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word != field) {
      status.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
      continue;
    }
    size_t kib = 0;
    status >> kib;
    return kib * 1024;
  }
  return 0;
}

}  // namespace

void* allocate_host(size_t bytes) {
  const size_t size = rounded(bytes);
  const bool cached = size >= kCachedFrom;
  if (cached)
    if (void* const address = host_cache().take(size)) return address;
  void* address = std::aligned_alloc(kAlignment, size);
  if (!address && cached) {
    host_cache().trim();
    address = std::aligned_alloc(kAlignment, size);
  }
  if (!address) throw std::bad_alloc();
  if (cached) host_cache().remember(address, size);
  return address;
}

void free_host(void* address, size_t bytes) noexcept {
  if (rounded(bytes) >= kCachedFrom)
    host_cache().give(address);
  else
    std::free(address);
}

void trim_host_cache() noexcept {
  host_cache().trim();
}

size_t kept_host_bytes() {
  return host_cache().free_bytes();
}

size_t resident_bytes() {
  return status_bytes("VmRSS:");
}
size_t peak_resident_bytes() {
  return status_bytes("VmHWM:");
}

}  // namespace trainyard
