#pragma once

#include <signal.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "rendezvous/store.h"

// SIGTERM on any rank ends all ranks at the same step.
namespace trainyard::rendezvous {

/// Notes SIGTERM and SIGINT while it lives, and puts the former handlers back. A second SIGINT ends the process as
/// usual, for the person who presses Ctrl-C twice. At most one at a time in a process.
class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  /// The first signal that came, or 0. Any thread may ask.
  [[nodiscard]] int received() const;
  [[nodiscard]] bool is_requested() const { return received() != 0; }

 private:
  struct sigaction old_terminate_ {
  }, old_interrupt_{};
};

/// Agreement of all ranks on the step that is the last. It rests on what synchronous training gives: no rank ends step
/// s + 1 before every rank has begun it. One thread a rank.
///
/// Two ways, which may be used together. A loop that sums over ranks in each step anyway adds wants_to_stop() to the
/// sum: if it is above zero, this step is the last, on all ranks alike. A loop that does not calls is_last(step)
/// between steps, at the price of one look into the store.
class StopAgreement {
 public:
  /// `store` must outlive it.
  explicit StopAgreement(Store& store) : store_(store) {}

  /// Called once a signal came to this rank, or by who wants the job to end in good order.
  void request() { requested_ = true; }
  [[nodiscard]] float wants_to_stop() const { return requested_ ? 1.0f : 0.0f; }

  /// Called by every rank after each of its steps and before the next: true where `step` is the last for all. A request
  /// made here takes effect one step later, as others may have begun that step already.
  [[nodiscard]] bool is_last(int64_t step);

 private:
  Store& store_;
  std::atomic<bool> requested_ = false;
};

}  // namespace trainyard::rendezvous
