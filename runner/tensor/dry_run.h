#pragma once

#include <cstddef>
#include <cstdint>

// A dry run carries out a program of tensors without its numbers: shapes are checked, storages are counted, and nothing
// is computed. So what a run will hold and do is asked of the code that will hold and do it.
namespace trainyard {

/// What one operation costs whoever computes it.
struct OperationCost {
  double matrix_flops = 0;  ///< multiplications and additions of matrix products and attention
  double bytes = 0;         ///< read and written
  size_t factor_bytes = 4;  ///< of an element that products take: devices have faster units for narrower ones
  bool on_host = false;     ///< of tensors in host memory, whether or not a device computes the rest
};

/// Who follows a dry run.
class DryRun {
 public:
  virtual ~DryRun() = default;
  virtual void operation(const OperationCost& cost) = 0;
  /// Whether the CPU's kernels would run, with the scratch memory that they take, or a device's.
  [[nodiscard]] virtual bool on_cpu() const = 0;
  /// Bytes of that device; 0: not known.
  [[nodiscard]] virtual size_t device_memory() const = 0;

  // Time, which not everybody keeps; in seconds from a beginning of its own.
  /// A copy between the host and the device.
  virtual void transfer(size_t /*bytes*/) {}
  /// What follows goes beside what follows its end, in order with other side work of that lane.
  virtual void begin_side_work(int /*lane*/) {}
  /// When it is done.
  virtual double end_side_work() { return 0; }
  virtual void wait_until(double /*seconds*/) {}
};

/// While it lives, what this thread computes with ops/ is a dry run: a storage made here has an address but takes
/// memory only where host code touches it (then it reads zeros), and kernels return at once, so results mean nothing.
/// Under a limit on address space host code may touch integers alone (ids, positions, lengths, indices).
/// Scopes nest. Storages may outlive it.
class DryRunScope {
 public:
  explicit DryRunScope(DryRun& run);
  ~DryRunScope();
  DryRunScope(const DryRunScope&) = delete;
  DryRunScope& operator=(const DryRunScope&) = delete;

 private:
  DryRun* outer_;
};

/// That of this thread; null where everything is real.
DryRun* dry_run();

enum class HostAccess : uint8_t { None, ReadsAndWrites };

/// Zeroed address space without memory behind it until it is touched; of large blocks that host code leaves alone,
/// where address space is limited, an address of nothing. Throws std::bad_alloc.
void* reserve_addresses(size_t bytes, HostAccess access);
/// `access` as they were reserved with.
void give_addresses_back(void* address, size_t bytes, HostAccess access) noexcept;

}  // namespace trainyard
