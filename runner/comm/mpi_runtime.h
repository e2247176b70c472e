#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/mutex.h"

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
  [[nodiscard]] Mutex& mutex() RETURNS_MUTEX(mutex_) { return mutex_; }
  /// A collective was abandoned: no orderly end any more, and no call. Its request stays active, so `memory`, which it
  /// reads and writes, is held until the process ends. Any thread.
  void give_up(std::shared_ptr<const void> memory) EXCLUDES(mutex_);
  [[nodiscard]] bool is_given_up() const REQUIRES(mutex_) { return is_given_up_; }
  [[nodiscard]] size_t held_back() const;  ///< collectives whose memory is held

 private:
  MpiRuntime() = default;

  int rank_ = 0, world_ = 1;
  mutable Mutex mutex_;
  bool is_given_up_ GUARDED_BY(mutex_) = false;
  std::vector<std::shared_ptr<const void>> held_back_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::comm
