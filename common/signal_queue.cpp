#include "common/signal_queue.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace trainyard {

SignalQueue::SignalQueue(std::initializer_list<int> signals) {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int signal : signals) sigaddset(&wanted, signal);
  struct sigaction at_hang_up {};
  ::sigaction(SIGHUP, nullptr, &at_hang_up);
  if (at_hang_up.sa_handler != SIG_IGN) sigaddset(&wanted, SIGHUP);
  if (::sigprocmask(SIG_BLOCK, &wanted, &old_) != 0)
    throw std::system_error(errno, std::system_category(), "sigprocmask");
  fd_ = UniqueFd(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_.valid()) throw std::system_error(errno, std::system_category(), "signalfd");
}

SignalQueue::~SignalQueue() {
  ::sigprocmask(SIG_SETMASK, &old_, nullptr);
}

std::optional<int> SignalQueue::next() const {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace trainyard
