#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "comm/communicator.h"

namespace trainyard::comm {

/// Runs jobs one at a time in the order they came, on a thread of its own.
///
/// A thread that waits for a job lends a hand: where nothing runs it runs the next job itself instead of sleeping until
/// the queue's thread has woken up, which halves the latency of small collectives. So a job may run on either thread,
/// never two at once.
/// The first job that throws poisons the queue: every later one throws the same without running.
/// At most kCapacity jobs are queued; submit() waits beyond that. Any thread may call.
class JobQueue {
 public:
  static constexpr size_t kCapacity = 1024;

  JobQueue();
  JobQueue(const JobQueue&) = delete;
  JobQueue& operator=(const JobQueue&) = delete;
  /// Jobs not begun are dropped, their Work throws PeerError. Waits for the one that runs: make that one end first.
  ~JobQueue();

  Work submit(std::function<void()> job);
  /// Waits until nothing is queued or runs; false where the deadline came first.
  [[nodiscard]] bool wait_idle(std::chrono::steady_clock::time_point deadline);
  /// Rethrows what poisoned the queue, if anything did.
  void throw_if_poisoned() const;

 private:
  class Shared;
  class Job;
  std::shared_ptr<Shared> shared_;
  std::jthread thread_;
};

}  // namespace trainyard::comm
