#pragma once

#include <csignal>

#include "common/signal_queue.h"

namespace trainyard::local {

/// Takes the signals of a runner from a descriptor while it lives. A closed pipe is an error of write(), and no signal.
class Signals : public SignalQueue {
 public:
  Signals() : SignalQueue({SIGTERM, SIGINT, SIGCHLD}), old_pipe_(::signal(SIGPIPE, SIG_IGN)) {}
  ~Signals() { ::signal(SIGPIPE, old_pipe_); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

 private:
  sighandler_t old_pipe_;
};

}  // namespace trainyard::local
