#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "common/mutex.h"

namespace trainyard {

/// What a storage is for. It is counted as what its maker's innermost MemoryKindScope said, for as long as it lives.
enum class MemoryKind : uint8_t {
  Other,        ///< batches, tables, whatever no scope names
  Parameters,   ///< this rank's shards
  Gradients,    ///< reduced, of this rank's shards
  Optimizer,    ///< moments
  Gathered,     ///< unsharded parameters and gradients, and the buffers of their collectives
  Activations,  ///< forward and backward: what is kept, what is under way, and the scratch of operations
  Offloaded,    ///< parked in host memory, activations and staged checkpoints: the same memory on a CPU only
};
constexpr size_t kMemoryKinds = 7;
std::string_view name_of(MemoryKind kind);

/// Bytes by kind.
struct MemoryUse {
  std::array<size_t, kMemoryKinds> of{};
  [[nodiscard]] size_t operator[](MemoryKind kind) const { return of[static_cast<size_t>(kind)]; }
  [[nodiscard]] size_t& operator[](MemoryKind kind) { return of[static_cast<size_t>(kind)]; }
  [[nodiscard]] size_t total() const;
};

/// Counts the tensor bytes that one rank holds. Threads may use it at once.
class MemoryLedger {
 public:
  /// `apart`: kinds in other memory than the rest, a device's in the host's. They are counted, but no peak is theirs.
  explicit MemoryLedger(std::vector<MemoryKind> apart = {}) : apart_(std::move(apart)) {}

  void add(size_t bytes, MemoryKind kind);
  void remove(size_t bytes, MemoryKind kind);
  /// What was counted as one kind is of another from now on.
  void move(size_t bytes, MemoryKind from, MemoryKind to);

  /// The bytes of all that is not apart, now and when they were most.
  [[nodiscard]] size_t held_bytes() const;
  [[nodiscard]] size_t peak_bytes() const;
  [[nodiscard]] MemoryUse held() const;
  /// What there was of each kind when peak_bytes() were held.
  [[nodiscard]] MemoryUse at_peak() const;
  /// The most there was of each kind, each at a moment of its own: their sum may be above the peak.
  [[nodiscard]] MemoryUse most() const;
  void restart_peak();

 private:
  void change(MemoryKind kind, size_t less, size_t more) REQUIRES(mutex_);
  void note(MemoryKind kind) REQUIRES(mutex_);

  const std::vector<MemoryKind> apart_;
  mutable Mutex mutex_;
  MemoryUse held_ GUARDED_BY(mutex_), at_peak_ GUARDED_BY(mutex_), most_ GUARDED_BY(mutex_);
  size_t total_ GUARDED_BY(mutex_) = 0, peak_ GUARDED_BY(mutex_) = 0;
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

/// While it lives, storages that this thread makes are of `kind`. Scopes nest.
class MemoryKindScope {
 public:
  explicit MemoryKindScope(MemoryKind kind);
  ~MemoryKindScope();
  MemoryKindScope(const MemoryKindScope&) = delete;
  MemoryKindScope& operator=(const MemoryKindScope&) = delete;

 private:
  MemoryKind outer_;
};

/// That of the innermost scope of this thread; Other outside any.
MemoryKind current_memory_kind();

/// Host memory for tensors, 64-byte aligned, not zeroed. Blocks of 64 KiB and more are kept for reuse when freed: a
/// training step asks for the same sizes again, and fresh pages from the kernel cost a fault and a clearing each. Kept
/// and in use together stay within 5/4 of the most that was ever in use: the longest unused goes first.
/// Throws std::bad_alloc. Any thread may call both.
void* allocate_host(size_t bytes);
void free_host(void* address, size_t bytes) noexcept;

/// Gives back to the kernel what free_host keeps.
void trim_host_cache() noexcept;
size_t kept_host_bytes();

/// This process's resident memory now and at its highest, in bytes (/proc/self/status); 0 where unknown.
size_t resident_bytes();
size_t peak_resident_bytes();

}  // namespace trainyard
