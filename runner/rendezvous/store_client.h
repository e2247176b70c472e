#pragma once

#include <map>
#include <optional>

#include "common/condition_variable.h"
#include "common/mutex.h"
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
  Reply await(uint32_t id, Clock::time_point deadline) REQUIRES(mutex_);
  void send(const Request& request, Clock::time_point deadline) EXCLUDES(mutex_);
  void read_some(Clock::time_point deadline) EXCLUDES(mutex_);
  void lose(const std::string& why) REQUIRES(mutex_);

  const ClientSettings settings_;
  const UniqueFd socket_;
  Mutex sending_;                       ///< held for a whole frame; never taken while mutex_ is held
  FrameReader frames_{kMaxReplyBytes};  ///< of the thread that reads

  Mutex mutex_;
  ConditionVariable changed_;
  std::map<uint32_t, std::optional<Reply>> pending_ GUARDED_BY(mutex_);
  std::string lost_ GUARDED_BY(mutex_);  ///< why, once the master is lost
  uint32_t next_id_ GUARDED_BY(mutex_) = 0;
  bool reading_ GUARDED_BY(mutex_) = false;  ///< a thread is at the socket
};

}  // namespace trainyard::rendezvous
