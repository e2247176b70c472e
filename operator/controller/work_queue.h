#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

namespace trainyard::controller {

/// Keys (namespace/name) that wait for a look, each at most once and never two looks at one key at a time. Without a
/// clock: `now` comes in. One thread.
class WorkQueue {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// The key is worked on as soon as may be. One that is being worked on comes once more afterwards.
  void add(const std::string& key, TimePoint now) { add_at(key, now); }
  /// The key is worked on at `time`, or sooner where it waits for an earlier one already.
  void add_at(const std::string& key, TimePoint time);
  /// The key that is due longest and not being worked on; it counts as worked on until done().
  [[nodiscard]] std::optional<std::string> take(TimePoint now);
  /// `rest`: the key is not taken again before.
  void done(const std::string& key, TimePoint rest);
  /// When take() will have something; none: not before a call that adds.
  [[nodiscard]] std::optional<TimePoint> next_due() const;
  /// Nothing is known of a key that is gone; one that is being worked on stays.
  void forget(const std::string& key);

  [[nodiscard]] size_t waiting() const { return due_.size(); }

 private:
  struct Entry {
    std::optional<TimePoint> due;  ///< when it wants to be looked at
    TimePoint rest{};              ///< and when it may be at the soonest
    bool is_taken = false;
  };
  void schedule(const std::string& key, Entry& entry);
  void unschedule(const std::string& key, const Entry& entry);

  std::unordered_map<std::string, Entry> entries_;
  std::multimap<TimePoint, std::string> due_;  ///< those that are not being worked on
};

/// How long a key rests after so many failures in a row: 100 ms doubling to a minute.
[[nodiscard]] std::chrono::milliseconds rest_after(int failures);

}  // namespace trainyard::controller
