#include "rendezvous/stop.h"

#include <fmt/format.h>

#include <stdexcept>

#include "base/text.h"

namespace trainyard::rendezvous {
namespace {

constexpr const char* kLastStep = "stop/last_step";

// A handler can reach nothing but what is static. Lock-free, so it may be written there.
std::atomic<int> first_signal = 0;
std::atomic<bool> is_watched = false;
static_assert(std::atomic<int>::is_always_lock_free);

void note(int signal) {
  int none = 0;
  first_signal.compare_exchange_strong(none, signal);
}

}  // namespace

SignalWatch::SignalWatch() {
  if (is_watched.exchange(true)) throw std::logic_error("a second SignalWatch in one process");
  first_signal = 0;
  struct sigaction action {};
  action.sa_handler = note;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGTERM, &action, &old_terminate_);
  action.sa_flags |= static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, &old_interrupt_);
}

SignalWatch::~SignalWatch() {
  ::sigaction(SIGTERM, &old_terminate_, nullptr);
  ::sigaction(SIGINT, &old_interrupt_, nullptr);
  is_watched = false;
}

int SignalWatch::received() const {
  return first_signal;
}

bool StopAgreement::is_last(int64_t step) {
  std::optional<std::string> last = store_.get(kLastStep);
  // Nobody can be past step + 1, as this rank has not begun it. Whoever ends step + 1 looks here before going on, and
  // this rank begins it only after the line below: so all see it.
  if (!last && requested_) last = store_.compare_and_set(kLastStep, std::nullopt, fmt::format("{}", step + 1));
  return last && step >= parse_int(*last).value();
}

}  // namespace trainyard::rendezvous
