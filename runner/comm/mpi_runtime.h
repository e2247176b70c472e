#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace trainyard::comm {

/// MPI in this process, started here and ended by the destructor, as it can be only once in a process's life.
/// Without ranks that wait for one another: what was given up is not ended, since MPI_Finalize waits for lost peers.
class MpiRuntime {
 public:
  /// True in a process that mpirun (or another PMI launcher) started as one of several ranks.
  static bool is_launched();

  /// The version of the library: "4.1.4".
  static std::string version();

  /// Throws InputError where this process was not started by mpirun, or Open MPI cannot be used from threads.
  static std::shared_ptr<MpiRuntime> start();
  ~MpiRuntime();
  MpiRuntime(const MpiRuntime&) = delete;
  MpiRuntime& operator=(const MpiRuntime&) = delete;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int world() const { return world_; }

  /// Rank 0's `text`, on every rank: where it serves the store, when no MASTER_ADDR says so. Collective.
  [[nodiscard]] std::string broadcast(const std::string& text);

  /// Held around every call of MPI: communicators with threads of their own share one library.
  [[nodiscard]] std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }
  /// A collective was abandoned: no orderly end any more, and no call. Its request stays active, so `memory`, which it
  /// reads and writes, is held until the process ends. Any thread, which does not hold the lock.
  void give_up(std::shared_ptr<const void> memory);
  [[nodiscard]] bool is_given_up() const { return is_given_up_; }  ///< under the lock
  [[nodiscard]] size_t held_back() const { return held_back_.size(); }  ///< collectives whose memory is held

 private:
  MpiRuntime() = default;

  std::mutex mutex_;
  int rank_ = 0, world_ = 1;
  bool is_given_up_ = false;
  std::vector<std::shared_ptr<const void>> held_back_;
};

}  // namespace trainyard::comm
