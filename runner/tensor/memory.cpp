#include "tensor/memory.h"

#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <mutex>
#include <new>
#include <string>

namespace trainyard {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kCachedFrom = size_t{64} << 10;

size_t rounded(size_t bytes) {
  const size_t step = bytes < kCachedFrom ? kAlignment : size_t{4096};
  return (bytes + step - 1) / step * step;
}

/// Free blocks by size. A block serves a request of at least 7/8 of its size, so at most an eighth is wasted.
class HostCache {
 public:
  ~HostCache() { trim(); }

  void* take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto block = free_.lower_bound(bytes);
    if (block == free_.end() || block->first - block->first / 8 > bytes) return nullptr;
    void* const address = block->second;
    sizes_[address] = block->first;
    free_.erase(block);
    return address;
  }

  void remember(void* address, size_t bytes) {
    const std::lock_guard lock(mutex_);
    sizes_[address] = bytes;
  }

  void give(void* address) {
    const std::lock_guard lock(mutex_);
    const auto used = sizes_.find(address);
    free_.emplace(used->second, address);
    sizes_.erase(used);
  }

  void trim() {
    const std::lock_guard lock(mutex_);
    for (const auto& [bytes, address] : free_) std::free(address);
    free_.clear();
  }

 private:
  std::mutex mutex_;
  std::multimap<size_t, void*> free_;
  std::map<void*, size_t> sizes_;  // the true size of each block in use, which may be above what was asked
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
size_t resident_bytes() {
  return status_bytes("VmRSS:");
}
size_t peak_resident_bytes() {
  return status_bytes("VmHWM:");
}

}  // namespace trainyard
