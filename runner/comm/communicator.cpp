#include "comm/communicator.h"

#include <utility>

namespace trainyard::comm {
namespace {

thread_local std::chrono::nanoseconds waited{};
thread_local bool is_waiting = false;

/// Adds what passes until the end of the scope, or of the one around it: who waits may run another's collective.
class CountedWait {
 public:
  ~CountedWait() {
    if (is_inner_) return;
    waited += std::chrono::steady_clock::now() - begin_;
    is_waiting = false;
  }

 private:
  const bool is_inner_ = std::exchange(is_waiting, true);
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace

void Work::wait() const {
  if (!state_) return;
  if (!state_->holds_the_host()) return state_->wait();
  const CountedWait counted;
  state_->wait();
}

void Work::wait_on_host() const {
  if (!state_) return;
  const CountedWait counted;
  state_->wait_on_host();
}

std::chrono::nanoseconds waited_by_this_thread() {
  return waited;
}

}  // namespace trainyard::comm
