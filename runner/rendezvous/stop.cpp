#include "rendezvous/stop.h"

#include <atomic>
#include <exception>
#include <stdexcept>

namespace trainyard::rendezvous {
namespace {

// A handler can reach nothing but what is static. Lock-free, so it may be written there.
std::atomic<int> first_signal = 0;
std::atomic<bool> is_watched = false;
static_assert(std::atomic<int>::is_always_lock_free);

void note(int signal) {
  int none = 0;
  first_signal.compare_exchange_strong(none, signal);
}

}  // namespace

SignalWatch::SignalWatch() : exceptions_(std::uncaught_exceptions()) {
  if (is_watched.exchange(true)) throw std::logic_error("a second SignalWatch in one process");
  first_signal = 0;
  const stack_t alternate{.ss_sp = stack_.data(), .ss_flags = 0, .ss_size = stack_.size()};
  ::sigaltstack(&alternate, &old_stack_);
  struct sigaction action {};
  action.sa_handler = note;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  ::sigaction(SIGTERM, &action, &old_terminate_);
  action.sa_flags |= static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, &old_interrupt_);
}

SignalWatch::~SignalWatch() {
  if (std::uncaught_exceptions() == exceptions_) {
    ::sigaction(SIGTERM, &old_terminate_, nullptr);
    ::sigaction(SIGINT, &old_interrupt_, nullptr);
  }
  ::sigaltstack(&old_stack_, nullptr);
  is_watched = false;
}

int SignalWatch::received() const {
  return first_signal;
}

}  // namespace trainyard::rendezvous
