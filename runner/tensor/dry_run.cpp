#include "tensor/dry_run.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <atomic>
#include <new>
#include <utility>

namespace trainyard {
namespace {

thread_local DryRun* t_run = nullptr;

// Under a limit on address space, as a run that found no memory may be, large storages that nobody touches leave most
// of it to the others and get this address.
constexpr size_t kLarge = size_t{4} << 20;
std::atomic<size_t> g_large{0};  // bytes reserved by large ones
constexpr size_t kPage = 4096;
void* const kNowhere = reinterpret_cast<void*>(kPage);

}  // namespace

DryRunScope::DryRunScope(DryRun& run) : outer_(std::exchange(t_run, &run)) {}
DryRunScope::~DryRunScope() {
  t_run = outer_;
}
DryRun* dry_run() {
  return t_run;
}

void* reserve_addresses(size_t bytes, HostAccess access) {
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

void give_addresses_back(void* address, size_t bytes) noexcept {
  if (address == kNowhere) return;
  munmap(address, bytes);
  if (bytes >= kLarge) g_large -= bytes;
}

}  // namespace trainyard
