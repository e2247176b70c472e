#include "tensor/dry_run.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <atomic>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

namespace trainyard {
namespace {

thread_local DryRun* t_run = nullptr;

// Under a limit on address space, as a run that found no memory may be, large storages that nobody touches leave most
// of it to the others and get this address.
constexpr size_t kLarge = size_t{4} << 20;
std::atomic<size_t> g_large{0};  // bytes reserved by large ones
constexpr size_t kPage = 4096;
void* const kNowhere = reinterpret_cast<void*>(kPage);

void unmap(void* address, size_t bytes) noexcept {
  munmap(address, bytes);
  if (bytes >= kLarge) g_large -= bytes;
}

/// Addresses that were given back, by size: a step takes the same sizes again and again, and a system call for each
/// would be most of a dry run's time. They have no memory behind them, as host code leaves it alone.
class SpareAddresses {
 public:
  [[nodiscard]] void* take(size_t bytes) {
    const auto found = by_size_.find(bytes);
    if (found == by_size_.end() || found->second.empty()) return nullptr;
    void* const address = found->second.back();
    found->second.pop_back();
    return address;
  }
  void keep(void* address, size_t bytes) { by_size_[bytes].push_back(address); }
  void release() noexcept {
    for (const auto& [bytes, addresses] : by_size_)
      for (void* const address : addresses) unmap(address, bytes);
    by_size_.clear();
  }

 private:
  std::unordered_map<size_t, std::vector<void*>> by_size_;
};
thread_local SpareAddresses t_spare;

}  // namespace

DryRunScope::DryRunScope(DryRun& run) : outer_(std::exchange(t_run, &run)) {}
DryRunScope::~DryRunScope() {
  t_run = outer_;
  if (!t_run) t_spare.release();
}
DryRun* dry_run() {
  return t_run;
}

void* reserve_addresses(size_t bytes, HostAccess access) {
  if (access == HostAccess::None)
    if (void* const spare = t_spare.take(bytes)) return spare;
  if (bytes >= kLarge && access == HostAccess::None) {
    rlimit limit{};
    const bool is_limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    if (is_limited && g_large + bytes > limit.rlim_cur / 8) return kNowhere;
  }
  void* const address =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) throw std::bad_alloc();
  if (bytes >= kLarge) g_large += bytes;
  return address;
}

void give_addresses_back(void* address, size_t bytes, HostAccess access) noexcept {
  if (address == kNowhere) return;
  if (t_run && access == HostAccess::None) return t_spare.keep(address, bytes);
  unmap(address, bytes);
}

}  // namespace trainyard
