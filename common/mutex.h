#pragma once

#include <mutex>

// Clang checks the use of these locks while it compiles (-Wthread-safety): shared state names the mutex that guards it,
// and what touches it without that mutex is an error. Other compilers read the names as nothing.
#ifdef __clang__
#define TRAINYARD_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define TRAINYARD_THREAD_SAFETY(attribute)
#endif
// A member or variable with this is touched only while the mutex is held.
#define GUARDED_BY(mutex) TRAINYARD_THREAD_SAFETY(guarded_by(mutex))
// Whoever calls a function or lambda with this holds the mutex.
#define REQUIRES(...) TRAINYARD_THREAD_SAFETY(requires_capability(__VA_ARGS__))
// Whoever calls a function with this does not hold the mutex.
#define EXCLUDES(...) TRAINYARD_THREAD_SAFETY(locks_excluded(__VA_ARGS__))
// A function with one of these takes the mutex, gives it up, or takes it where it returns the value that comes first.
#define ACQUIRE(...) TRAINYARD_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define RELEASE(...) TRAINYARD_THREAD_SAFETY(release_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) TRAINYARD_THREAD_SAFETY(try_acquire_capability(__VA_ARGS__))
// After a call of a function with this clang believes that the mutex is held.
#define ASSERT_HELD(mutex) TRAINYARD_THREAD_SAFETY(assert_capability(mutex))
// A function with this returns a reference to the mutex.
#define RETURNS_MUTEX(mutex) TRAINYARD_THREAD_SAFETY(lock_returned(mutex))
#define MUTEX_CLASS TRAINYARD_THREAD_SAFETY(capability("mutex"))  // Its objects are mutexes.
#define LOCK_CLASS TRAINYARD_THREAD_SAFETY(scoped_lockable)  // Its objects do something to a mutex for a scope.
#define NO_THREAD_SAFETY_ANALYSIS TRAINYARD_THREAD_SAFETY(no_thread_safety_analysis)  // A comment says why.

namespace trainyard {

/// This is std::mutex with what clang needs to know of it.
class MUTEX_CLASS Mutex {
 public:
  void lock() ACQUIRE() { mutex_.lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }
  [[nodiscard]] bool try_lock() TRY_ACQUIRE(true) { return mutex_.try_lock(); }

  /// Condition variables of the standard wait with this.
  [[nodiscard]] std::mutex& standard() { return mutex_; }

 private:
  std::mutex mutex_;
};

/// Holds a mutex for a scope.
class LOCK_CLASS MutexLock {
 public:
  [[nodiscard]] explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex.lock(); }
  /// The mutex is held already.
  [[nodiscard]] MutexLock(Mutex& mutex, std::adopt_lock_t) REQUIRES(mutex) : mutex_(mutex) {}
  ~MutexLock() RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

/// Gives up for a scope a mutex that is held around it.
class LOCK_CLASS MutexUnlock {
 public:
  [[nodiscard]] explicit MutexUnlock(Mutex& mutex) RELEASE(mutex) : mutex_(mutex) { mutex.unlock(); }
  ~MutexUnlock() RELEASE() { mutex_.lock(); }  // clang's name for the end of such a scope, though it takes the mutex
  MutexUnlock(const MutexUnlock&) = delete;
  MutexUnlock& operator=(const MutexUnlock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace trainyard
