#pragma once

#include <nccl.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "comm/cuda/nccl_library.h"
#include "comm/roster.h"
#include "common/mutex.h"

namespace trainyard::comm {

/// The ranks of a communicator and their ncclComm_t, which never blocks the host: calls return ncclInProgress and go on
/// by themselves. One thread issues, another asks for the state; any may abort.
class NcclGroup {
 public:
  /// It has no ncclComm_t yet. `name` is the communicator's, "" for the world; `prefix` is of its keys in the store.
  NcclGroup(Roster roster, std::string name, std::string prefix)
      : roster_(std::move(roster)), name_(std::move(name)), prefix_(std::move(prefix)) {}
  ~NcclGroup() { abort(); }
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  [[nodiscard]] const Roster& roster() const { return roster_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& prefix() const { return prefix_; }

  /// The number of the next operation, from 1 on. The thread that issues calls it.
  uint64_t next_number() { return ++operations_; }

  /// Starts the world's; ncclInProgress. The calling thread's current CUDA device becomes the group's.
  ncclResult_t join(const ncclUniqueId& id);
  /// Starts that of `part`, ranks of this group that all give the same `color`, under way in this group's state().
  ncclResult_t split(int color, NcclGroup& part);
  /// A part calls it once that state is ncclSuccess.
  void adopt_split();

  /// Calls `function(ncclComm_t)` and returns its result.
  template <typename Function>
  ncclResult_t call(Function&& function) {
    const MutexLock lock(mutex_);
    return handle_ ? function(handle_) : ncclInvalidUsage;
  }
  /// ncclInProgress: NCCL, or another thread in a call, is not through yet, or the group has not been started yet.
  /// ncclSuccess: what was called is queued on its stream. ncclInvalidUsage: the group has ended. Else what has failed.
  [[nodiscard]] ncclResult_t state();

  /// Ends in good order, with all its ranks. False where the deadline or a failure came first: abort() is next.
  [[nodiscard]] bool finish(std::chrono::steady_clock::time_point deadline);
  /// Ends at once what is under way on the device; the group is of no use afterwards.
  /// clang does not check it: where a thread is stuck in a call of NCCL this goes on without the mutex.
  void abort() noexcept NO_THREAD_SAFETY_ANALYSIS;

 private:
  const Roster roster_;
  const std::string name_;  // outlives handle_, whose messages use it
  const std::string prefix_;
  uint64_t operations_ = 0;
  Mutex mutex_;
  ncclComm_t handle_ GUARDED_BY(mutex_) = nullptr;  // and so are the calls of NCCL with it
  bool has_ended_ GUARDED_BY(mutex_) = false;
  ncclComm_t split_ = nullptr;  // written by NCCL's thread until the parent's state is ncclSuccess
};

inline bool is_under_way(ncclResult_t result) {
  return result == ncclSuccess || result == ncclInProgress;
}

}  // namespace trainyard::comm
