#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "comm/cuda/lost_ranks.h"
#include "comm/cuda/nccl_group.h"
#include "comm/seen.h"
#include "common/condition_variable.h"
#include "common/mutex.h"
#include "tensor/device.h"

namespace trainyard::comm {

/// An operation of this rank on a group, from its issue until the device is through with it.
struct NcclFlight {
  std::shared_ptr<NcclGroup> group;
  Call call;
  uint64_t number;  ///< among the group's operations, from 1
  uint64_t record;  ///< in the flight record
  std::atomic<ncclResult_t> refused = ncclSuccess;

  // Guarded by the watch's mutex; the events are set once, before the Work is there that uses them.
  CollectiveRecord seen;
  std::optional<Event> start, end;  ///< on the group's stream; none: NCCL has not queued it yet
  bool has_begun = false, is_done = false;
  std::exception_ptr lost;

  /// Since when it waits for nothing but its peers; none: work before it on its stream is not done.
  [[nodiscard]] std::optional<std::chrono::steady_clock::time_point> waits_since() const;
};

/// Watches over what one rank has in flight on all its groups, from a thread of its own: what has begun and ended, for
/// the records; and what never will, as a device waits for a lost peer for ever and says nothing. One failure ends all:
/// it is noted, then every group is aborted, so that who finds the device's work done must look for a failure next.
class NcclWatch {
 public:
  NcclWatch(LostRanks lost_ranks, int device, std::chrono::milliseconds timeout, std::shared_ptr<Seen> seen);

  /// As Communicator::on_collective(); called on any thread that finds a collective done.
  CollectiveObserver on_collective(CollectiveObserver observer);

  /// A group to abort when one fails.
  void add(const std::shared_ptr<NcclGroup>& group);

  /// An operation that is issued now. Throws what has failed before.
  std::shared_ptr<NcclFlight> begin(const std::shared_ptr<NcclGroup>& group, const char* name, std::string label,
                                    size_t bytes);
  /// What NCCL answered to the operation, and then `group`'s state, until that is ncclSuccess. Throws what has failed.
  void settle(NcclFlight& flight, NcclGroup& group, ncclResult_t result);
  /// Where it lies on the group's stream.
  void launched(NcclFlight& flight, Event start, Event end);
  /// One that is no work of a device is over.
  void ended(NcclFlight& flight);

  /// Throws where the operation has been lost, or anything has failed since it was issued.
  void throw_if_lost(const NcclFlight& flight) const;
  /// Returns when the device is through with it, and it is recorded. Throws as throw_if_lost().
  void await(NcclFlight& flight);
  /// It does as await() for all that `group` has in flight; false where the deadline came first.
  [[nodiscard]] bool await_all(const NcclGroup& group, std::chrono::steady_clock::time_point deadline);
  /// This rank aborts `group`: what it has in flight is lost to it.
  void abandon(NcclGroup& group);

 private:
  using Clock = std::chrono::steady_clock;
  using Flights = std::vector<std::shared_ptr<NcclFlight>>;

  /// What waits longest, and since when.
  struct Stuck {
    std::shared_ptr<NcclFlight> flight;
    Clock::time_point since;
  };

  void serve(const std::stop_token& stop);
  void look() REQUIRES(mutex_);
  void retire(NcclFlight& flight) REQUIRES(mutex_);
  [[nodiscard]] std::optional<Stuck> longest_wait() const REQUIRES(mutex_);
  [[nodiscard]] std::exception_ptr judge(const Flights& flights, const std::optional<Stuck>& stuck,
                                         const std::stop_token& stop);
  [[nodiscard]] std::exception_ptr judge(const Stuck& stuck);
  [[nodiscard]] std::exception_ptr failure_of(const NcclFlight& flight, ncclResult_t result,
                                              const std::stop_token& stop);
  [[nodiscard]] std::optional<std::string> lost_meanwhile(const Call& call, const std::stop_token& stop);
  void fail(const std::exception_ptr& failure) EXCLUDES(mutex_);

  LostRanks lost_ranks_;
  const int device_;
  const std::chrono::milliseconds timeout_;
  const std::shared_ptr<Seen> seen_;
  Clock::time_point next_question_{};  // of the thread

  mutable Mutex mutex_;  // guards also what flights have for the watch
  StoppableConditionVariable changed_;
  Flights flights_ GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<NcclGroup>> groups_ GUARDED_BY(mutex_);
  std::exception_ptr failure_ GUARDED_BY(mutex_);
  std::jthread thread_;  // last: it uses all above
};

}  // namespace trainyard::comm
