#pragma once

#include <poll.h>

#include <csignal>
#include <initializer_list>
#include <optional>

#include "common/unique_fd.h"

namespace trainyard {

/// Takes signals one after another from a descriptor while it lives, in place of handlers. Children have to start with a
/// signal mask of their own. One thread, which is the one that made it.
class SignalQueue {
 public:
  /// Blocks `signals`, and SIGHUP unless nohup has this process ignore it, here and in threads that are started later.
  /// Throws std::system_error.
  explicit SignalQueue(std::initializer_list<int> signals);
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  /// It is ready when a signal has come.
  [[nodiscard]] pollfd poll_entry() const { return {.fd = fd_.get(), .events = POLLIN, .revents = 0}; }

  /// The next one that has come. It does not wait.
  [[nodiscard]] std::optional<int> next() const;

 private:
  UniqueFd fd_;
  sigset_t old_{};
};

}  // namespace trainyard
