#pragma once

#include <poll.h>
#include <sys/signalfd.h>

#include <cerrno>
#include <csignal>
#include <optional>
#include <system_error>

#include "common/unique_fd.h"

namespace trainyard::local {

/// Takes the signals of a runner from a descriptor while it lives.
class Signals {
 public:
  Signals() {
    sigset_t wanted;
    sigemptyset(&wanted);
    for (const int signal : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&wanted, signal);
    struct sigaction at_hang_up {};
    ::sigaction(SIGHUP, nullptr, &at_hang_up);
    if (at_hang_up.sa_handler != SIG_IGN) sigaddset(&wanted, SIGHUP);  // else it was started by nohup
    if (::sigprocmask(SIG_BLOCK, &wanted, &old_) != 0)
      throw std::system_error(errno, std::system_category(), "sigprocmask");
    fd_ = UniqueFd(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd_.valid()) throw std::system_error(errno, std::system_category(), "signalfd");
    old_pipe_ = ::signal(SIGPIPE, SIG_IGN);
  }
  ~Signals() {
    ::signal(SIGPIPE, old_pipe_);
    ::sigprocmask(SIG_SETMASK, &old_, nullptr);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  [[nodiscard]] pollfd poll_entry() const { return {.fd = fd_.get(), .events = POLLIN, .revents = 0}; }
  [[nodiscard]] std::optional<int> next() const {
    signalfd_siginfo info{};
    if (::read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
    return static_cast<int>(info.ssi_signo);
  }

 private:
  UniqueFd fd_;
  sigset_t old_{};
  sighandler_t old_pipe_ = SIG_DFL;
};

}  // namespace trainyard::local
