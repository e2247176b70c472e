#pragma once

#include <condition_variable>
#include <utility>

#include "common/mutex.h"

namespace trainyard {

/// One of the two condition variables of the standard, for a Mutex: its functions take the mutex, which the caller
/// holds, in place of a lock, and else what the standard's take. A predicate is a lambda that REQUIRES() the mutex.
template <typename Standard>
class BasicConditionVariable {
 public:
  void notify_one() noexcept { standard_.notify_one(); }
  void notify_all() noexcept { standard_.notify_all(); }

  template <typename... Arguments>
  auto wait(Mutex& mutex, Arguments&&... arguments) REQUIRES(mutex) {
    Held held(mutex);
    return standard_.wait(held.lock, std::forward<Arguments>(arguments)...);
  }
  template <typename... Arguments>
  auto wait_for(Mutex& mutex, Arguments&&... arguments) REQUIRES(mutex) {
    Held held(mutex);
    return standard_.wait_for(held.lock, std::forward<Arguments>(arguments)...);
  }
  template <typename... Arguments>
  auto wait_until(Mutex& mutex, Arguments&&... arguments) REQUIRES(mutex) {
    Held held(mutex);
    return standard_.wait_until(held.lock, std::forward<Arguments>(arguments)...);
  }

 private:
  /// This is the standard's lock of a mutex that stays held after it.
  struct Held {
    explicit Held(Mutex& mutex) : lock(mutex.standard(), std::adopt_lock) {}
    ~Held() { lock.release(); }
    std::unique_lock<std::mutex> lock;
  };
  Standard standard_;
};

using ConditionVariable = BasicConditionVariable<std::condition_variable>;
/// Its waits also end by a std::stop_token.
using StoppableConditionVariable = BasicConditionVariable<std::condition_variable_any>;

}  // namespace trainyard
