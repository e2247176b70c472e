#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>

#include "rendezvous/connector.h"
#include "rendezvous/protocol.h"
#include "rendezvous/sockets.h"
#include "rendezvous/store.h"

namespace trainyard::rendezvous {

/// A rank's connection to the store on the master. Threads may call at once: one that waits for minutes does not hold
/// up another. There is no thread of its own: of the threads that wait for an answer, one reads for all.
/// Once the master is lost, every call throws the same PeerError; it does not connect again, as the store is lost too.
class StoreClient final : public Store {
 public:
  /// Connects, with patience: see connect_to_store().
  explicit StoreClient(ClientSettings settings);

  void set(const std::string& key, const std::string& value) override;
  [[nodiscard]] std::optional<std::string> get(const std::string& key) override;
  [[nodiscard]] Waited try_wait(std::span<const std::string> keys, std::chrono::milliseconds timeout) override;
  int64_t add(const std::string& key, int64_t delta) override;
  std::string compare_and_set(const std::string& key, const std::optional<std::string>& expected,
                              const std::string& desired) override;
  bool erase(const std::string& key) override;
  std::string claim(const std::string& key, const std::string& value) override;
  void close() override;

  /// This end of the connection: the address by which this host reaches the master.
  [[nodiscard]] Address local_address() const { return rendezvous::local_address(socket_.get()); }

 private:
  using Clock = std::chrono::steady_clock;

  Reply call(Request request, std::chrono::milliseconds patience);
  Reply await(uint32_t id, Clock::time_point deadline, std::unique_lock<std::mutex>& lock);
  void send(const Request& request, Clock::time_point deadline);
  void read_some(Clock::time_point deadline);
  void lose(const std::string& why);

  const ClientSettings settings_;
  const UniqueFd socket_;
  std::mutex sending_;                  ///< held for a whole frame; never taken while mutex_ is held
  FrameReader frames_{kMaxReplyBytes};  ///< of the thread that reads

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint32_t, std::optional<Reply>> pending_;  // guarded by mutex_, as all below
  std::string lost_;                                  ///< why, once the master is lost
  uint32_t next_id_ = 0;
  bool reading_ = false;  ///< a thread is at the socket
};

}  // namespace trainyard::rendezvous
