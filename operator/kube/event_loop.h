#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "common/mutex.h"

namespace trainyard::kube {

/// One thread that runs everything: what becomes readable, what is due, what was posted. `run`, timers and descriptors
/// belong to that thread; `post` and `stop` may come from any. A task that throws ends run() with its exception.
class EventLoop {
 public:
  using Clock = std::chrono::steady_clock;
  using Task = std::function<void()>;
  enum class TimerId : uint64_t { None = 0 };
  enum Readiness : unsigned { Readable = 1, Writable = 2 };  ///< bits; errors and hang-ups count as both

  EventLoop();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  /// Runs until stop(); a stop() that came before it ends it at once. May be called again afterwards.
  void run();
  /// Any thread, and signal handlers.
  void stop() noexcept;
  /// Runs `task` in a later turn of the loop. Any thread; tasks of one thread keep their order.
  void post(Task task);

  /// Runs `task` once, `duration` from now.
  TimerId after(Clock::duration duration, Task task);
  /// Nothing happens where it has run or is none.
  void cancel(TimerId id);

  /// Calls `ready` with the bits that hold whenever one of `interest` does; replaces what was there for `fd`.
  void watch(int fd, unsigned interest, std::function<void(unsigned ready)> ready);
  /// It is called before `fd` is closed.
  void unwatch(int fd);

  [[nodiscard]] static Clock::time_point now() { return Clock::now(); }

 private:
  struct Watched {
    uint32_t serial;  ///< tells a descriptor from the closed one that had its number
    std::shared_ptr<std::function<void(unsigned)>> ready;
  };
  using TimerKey = std::pair<Clock::time_point, uint64_t>;

  void turn();
  void wait();
  void run_due_timers();
  void run_posted();
  [[nodiscard]] int milliseconds_to_next() const;

  int epoll_ = -1, wakeup_ = -1;
  std::atomic<bool> stopping_ = false;
  Mutex mutex_;
  std::vector<Task> posted_ GUARDED_BY(mutex_);
  std::map<TimerKey, Task> timers_;
  std::unordered_map<uint64_t, Clock::time_point> due_;  ///< by timer id
  uint64_t last_timer_ = 0;
  std::unordered_map<int, Watched> watched_;
  uint32_t last_serial_ = 0;
};

}  // namespace trainyard::kube
