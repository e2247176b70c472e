#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/condition_variable.h"
#include "common/mutex.h"
#include "common/unique_fd.h"
#include "http/daemon.h"
#include "http/deadlines.h"
#include "http/message.h"

namespace trainyard::http {

/// An HTTP or HTTPS server: threads that wait in epoll, so an idle connection costs memory alone. Runs from its
/// construction to its destruction; set_identity() may be called from any thread meanwhile.
class Server {
 public:
  /// `listening` from listen_on(). With an identity it speaks TLS 1.2 and 1.3. Throws std::runtime_error where the
  /// identity is of no use.
  Server(UniqueFd listening, Handler handler, const Limits& limits, std::optional<Identity> identity = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// New connections get this certificate; those that are open end in order, within half a minute. The listening socket
  /// stays, so nobody is refused meanwhile. Throws as the constructor, and then the old identity stays. Only for a
  /// server that began with one.
  void set_identity(const Identity& identity);

  [[nodiscard]] uint16_t port() const { return port_; }

 private:
  struct Draining {
    std::unique_ptr<Daemon> daemon;
    Deadlines::Clock::time_point until;
  };
  void watch(const std::stop_token& stop);
  std::vector<Draining> take_drained(Deadlines::Clock::time_point now) REQUIRES(mutex_);

  const UniqueFd listening_;
  const uint16_t port_;
  const Handler handler_;
  const Limits limits_;
  Deadlines deadlines_;
  Mutex mutex_;
  StoppableConditionVariable stopping_;
  std::unique_ptr<Daemon> daemon_ GUARDED_BY(mutex_);
  std::vector<Draining> draining_ GUARDED_BY(mutex_);
  std::jthread watcher_;  ///< last: it uses all above
};

}  // namespace trainyard::http
