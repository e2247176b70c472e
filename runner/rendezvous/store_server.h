#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "base/files.h"
#include "rendezvous/engine.h"
#include "rendezvous/proof.h"
#include "rendezvous/session.h"

namespace trainyard::rendezvous {

struct ServerSettings {
  std::string host;   ///< as ranks call the master; a loopback address is listened on alone
  uint16_t port = 0;  ///< 0: a free one
  UniqueFd listener;  ///< a socket that listens already, in place of host and port
  Credentials credentials;
  std::chrono::milliseconds proof_timeout = std::chrono::seconds(10);  ///< a stranger has so long to prove itself
  size_t max_connections = 16384;
  size_t max_strangers = 4096;  ///< connections that have not proved themselves yet
  TableLimits limits;
};

/// The rendezvous store of a job, listening on the master. One thread of its own serves every client; what strangers
/// send changes nothing but a bounded buffer of theirs. Ends, with all its connections, in the destructor. A rank of a
/// later restart tells that the world here has lost a rank: then every client loses the store, so that none waits for
/// it.
class StoreServer {
 public:
  /// Listens when it returns. Throws InputError naming the port, where it is in use.
  explicit StoreServer(ServerSettings settings);
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  [[nodiscard]] uint16_t port() const { return port_; }
  /// Clients that are connected now, strangers included. Any thread may ask.
  [[nodiscard]] size_t clients() const { return clients_; }

 private:
  struct Connection {
    UniqueFd socket;
    ServerSession session;
    std::string peer;      ///< its address, for messages
    uint32_t events;       ///< that epoll watches for
    std::string output{};  ///< not yet taken by the kernel
    size_t sent = 0;       ///< of output
  };
  using Connections = std::map<ConnectionId, Connection>;

  void serve(const std::stop_token& stop);
  [[nodiscard]] int wait_milliseconds() const;
  void accept_all();
  void on_event(ConnectionId id, uint32_t events);
  bool receive(ConnectionId id, Connection& connection);
  void deliver(Answers answers);
  bool flush(ConnectionId id, Connection& connection);
  bool watch(ConnectionId id, Connection& connection);
  void drop(ConnectionId id, const std::string& why);
  void drop_slow_strangers();
  void drop_all();
  void listen_again();

  ServerSettings settings_;
  UniqueFd listener_;
  UniqueFd epoll_;
  UniqueFd wake_;  ///< an eventfd: the destructor ends the epoll_wait
  uint16_t port_ = 0;
  std::atomic<size_t> clients_ = 0;  ///< connections_.size(), for other threads

  // The thread alone has these.
  Connections connections_;
  std::map<ConnectionId, TimePoint> strangers_;  ///< by age, as ids grow: when each must have proved itself
  Engine engine_;
  ConnectionId next_id_ = 2;  ///< 0 and 1 mark the listener and the eventfd
  size_t buffered_ = 0;       ///< input bytes of all sessions
  bool accepting_ = true;

  std::jthread thread_;
};

}  // namespace trainyard::rendezvous
