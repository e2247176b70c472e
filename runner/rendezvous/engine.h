#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "rendezvous/protocol.h"
#include "rendezvous/table.h"

namespace trainyard::rendezvous {

using ConnectionId = uint64_t;
using TimePoint = std::chrono::steady_clock::time_point;

struct Answer {
  ConnectionId connection;
  Reply reply;
};
using Answers = std::vector<Answer>;

/// What a store does with requests: the table, who waits for which keys, and which keys go with whom. Without sockets
/// and without a clock: `now` comes in. One thread at a time.
class Engine {
 public:
  /// `limits` hold for the table, and its bytes once more for the keys of all waits together.
  explicit Engine(TableLimits limits = {}) : limits_(limits), table_(limits) {}

  /// Every answer that is due now: to this request, unless it is a wait that goes on, and to waits that it ends.
  Answers handle(ConnectionId connection, const Request& request, TimePoint now);
  /// Ends the waits whose time is over.
  Answers expire(TimePoint now);
  /// Forgets the waits of a connection and erases the keys that it has claimed.
  void disconnect(ConnectionId connection);
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;

  [[nodiscard]] size_t waiting() const { return waiters_.size(); }
  [[nodiscard]] const Table& table() const { return table_; }

 private:
  using WaiterId = uint64_t;
  /// A wait stands in line at the first key that it misses, not at all of them: so a thousand waits for the same
  /// thousand keys cost one look each time the key they all stand at comes.
  struct Waiter {
    ConnectionId connection;
    uint32_t request;
    std::vector<std::string> keys;
    TimePoint deadline;
    size_t bytes = 0;      ///< of keys
    size_t stands_at = 0;  ///< index into keys
  };

  Reply apply(ConnectionId connection, const Request& request);
  void begin_wait(ConnectionId connection, const Request& request, TimePoint now, Answers& answers);
  void wake(const std::string& key, Answers& answers);
  [[nodiscard]] std::optional<size_t> first_missing(const Waiter& waiter) const;
  [[nodiscard]] Reply found_all(const Waiter& waiter) const;
  [[nodiscard]] Reply timed_out(const Waiter& waiter) const;
  void leave_line(const Waiter& waiter, WaiterId id);
  void forget(WaiterId id);
  void disown(const std::string& key);

  TableLimits limits_;
  Table table_;
  size_t waiting_bytes_ = 0;
  std::unordered_map<WaiterId, Waiter> waiters_;
  std::unordered_map<std::string, std::set<WaiterId>> lines_;  ///< by the key they stand at
  std::set<std::pair<TimePoint, WaiterId>> deadlines_;
  std::unordered_map<ConnectionId, std::set<WaiterId>> waiters_of_;
  std::unordered_map<std::string, ConnectionId> owners_;
  std::unordered_map<ConnectionId, std::set<std::string>> owned_by_;
  WaiterId next_waiter_ = 0;
};

}  // namespace trainyard::rendezvous
