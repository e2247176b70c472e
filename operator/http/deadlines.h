#pragma once

#include <chrono>
#include <cstddef>
#include <unordered_map>

#include "common/mutex.h"

namespace trainyard::http {

/// The times until which each open connection must have done its next thing. The library only counts time without any
/// byte, so a client that sends one now and then would hold its connection for ever. Any thread.
class Deadlines {
 public:
  using Clock = std::chrono::steady_clock;

  /// Adds `fd`, or moves its deadline.
  void set(int fd, Clock::time_point deadline);
  /// It is called before `fd` is closed: afterwards its number may be another's.
  void remove(int fd);
  /// Shuts the connections down whose deadline has passed, and forgets them; the library then sees their end and closes
  /// them. Returns how many.
  size_t shut_down_overdue(Clock::time_point now);
  [[nodiscard]] bool empty() const;

 private:
  mutable Mutex mutex_;
  std::unordered_map<int, Clock::time_point> of_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::http
