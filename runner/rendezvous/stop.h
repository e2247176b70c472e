#pragma once

#include <signal.h>

#include <vector>

// What a loop needs to end in good order on SIGTERM: one rank notes it, and the exchange that every step makes anyway
// tells the others, so that all end at the same step (train/exchange.h).
namespace trainyard::rendezvous {

/// Notes SIGTERM and SIGINT while it lives, and puts the former handlers back. A second SIGINT ends the process as
/// usual, for the person who presses Ctrl-C twice. At most one at a time in a process, made on the thread that
/// computes.
/// Where an exception ends it the handlers stay, as the process is ending: the SIGTERM that a launcher sends once
/// another rank has ended must not come before the error is told.
///
/// Handlers run on a stack of their own: oneDNN's products for AVX-512 (2.6.3) keep values below the stack pointer, and
/// a handler there overwrites them; the next free() then found the heap damaged.
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
  std::vector<char> stack_ = std::vector<char>(64 << 10);
  stack_t old_stack_{};
  int exceptions_ = 0;  ///< under way when this was made
  struct sigaction old_terminate_ {
  }, old_interrupt_{};
};

}  // namespace trainyard::rendezvous
