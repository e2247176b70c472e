#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

namespace trainyard {

/// Counts the tensor bytes that one rank holds. Threads may use it at once.
class MemoryLedger {
 public:
  void add(size_t bytes);
  void remove(size_t bytes) { held_ -= bytes; }
  [[nodiscard]] size_t held_bytes() const { return held_; }
  [[nodiscard]] size_t peak_bytes() const { return peak_; }
  void restart_peak() { peak_ = held_.load(); }

 private:
  std::atomic<size_t> held_{0}, peak_{0};
};

/// While it lives, storages that this thread allocates are counted in `ledger`, from then to their release, whichever
/// thread releases them. Scopes nest. In-process ranks are threads of one process: this tells their memory apart.
class MemoryScope {
 public:
  explicit MemoryScope(std::shared_ptr<MemoryLedger> ledger);
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

 private:
  std::shared_ptr<MemoryLedger> outer_;
};

/// The ledger of the innermost scope of this thread; null outside any.
const std::shared_ptr<MemoryLedger>& current_ledger();

/// Host memory for tensors, 64-byte aligned, not zeroed. Blocks of 64 KiB and more are kept for reuse when freed: a
/// training step asks for the same sizes again, and fresh pages from the kernel cost a fault and a clearing each.
/// Throws std::bad_alloc. Any thread may call both.
void* allocate_host(size_t bytes);
void free_host(void* address, size_t bytes) noexcept;

/// Gives back to the kernel what free_host keeps.
void trim_host_cache() noexcept;

/// This process's resident memory now and at its highest, in bytes (/proc/self/status); 0 where unknown.
size_t resident_bytes();
size_t peak_resident_bytes();

}  // namespace trainyard
