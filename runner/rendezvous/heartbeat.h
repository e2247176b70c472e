#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "common/condition_variable.h"
#include "common/mutex.h"
#include "rendezvous/store.h"

namespace trainyard::rendezvous {

/// A rank that the master does not hear.
struct SilentRank {
  int rank = 0;
  std::string host;
  std::chrono::milliseconds silent_for{};
  bool is_gone = false;  ///< its connection has ended without a farewell
  bool operator==(const SilentRank&) const = default;
};

/// Who beats how long ago, on the master's clock and no other. Pure. One thread at a time.
class BeatCount {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  BeatCount(std::vector<std::string> hosts, TimePoint now)
      : hosts_(std::move(hosts)), heard_(hosts_.size(), {"", now}) {}

  /// What was seen of `rank` now: its beat ("" for none yet), and whether its connection stands.
  void observe(int rank, const std::string& beat, bool is_connected, TimePoint now);
  /// Ranks that left in good order are never silent.
  [[nodiscard]] std::vector<SilentRank> silent(std::chrono::milliseconds after, TimePoint now) const;

 private:
  struct Heard {
    std::string beat;
    TimePoint at;
    bool is_connected = true;
  };
  std::vector<std::string> hosts_;
  std::vector<Heard> heard_;
};

/// This rank's beat in the store, from a thread of its own. On rank 0 it also counts the others' and keeps the list of
/// silent ranks in the store, with a log line when the list changes.
class Heartbeat {
 public:
  struct Settings {
    std::chrono::milliseconds interval = std::chrono::seconds(5);
    std::chrono::milliseconds silent_after = std::chrono::seconds(15);  ///< three beats
  };

  /// `store` must outlive it. `hosts` by rank.
  Heartbeat(Store& store, int rank, std::vector<std::string> hosts, const Settings& settings);

  /// Marks the rank as one that left in good order, and ends the thread.
  void leave();

 private:
  void run(const std::stop_token& stop);
  void count_others(BeatCount& count);

  Store& store_;
  const int rank_;
  const std::vector<std::string> hosts_;
  const Settings settings_;
  std::string last_list_;  ///< of the thread
  Mutex mutex_;  ///< It guards nothing, and is there because due_ waits with it.
  StoppableConditionVariable due_;
  std::jthread thread_;  ///< last: it uses all above
};

/// The list that rank 0 keeps, and who left last words, as gone. Throws PeerError where the master is lost.
std::vector<SilentRank> silent_in(Store& store);

/// As store.try_wait(), but throws PeerError naming the ranks that are gone by then, as soon as one is: what it would
/// have said does not come. `given_up` is asked meanwhile; null: nobody gives up. Looks every second.
Waited wait_for_ranks(Store& store, std::span<const std::string> keys, std::chrono::milliseconds timeout,
                      const std::function<bool()>& given_up = nullptr);

/// "rank 3 (llama-worker-2) silent for 17 s, rank 5 (llama-worker-4) gone"
std::string describe(const std::vector<SilentRank>& silent);

/// What a rank claims when it joins, and so holds as long as its process is connected.
std::string member_key(int rank);

}  // namespace trainyard::rendezvous
