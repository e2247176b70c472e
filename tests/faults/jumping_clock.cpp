// Preloaded into a program, this moves its calendar by as many seconds as are in the file that $TRAINYARD_TEST_CLOCK
// names: an int64_t, looked at each time, so that a jump is there at once. The monotonic clock, and with it every wait,
// stays as it is. (libfaketime takes waits upon itself as well, and fails some of them.)
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

const std::atomic<int64_t>* shared_offset() {
  static std::atomic<int64_t> none{0};
  const char* const path = std::getenv("TRAINYARD_TEST_CLOCK");
  const int file = path ? ::open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return &none;
  void* const memory = ::mmap(nullptr, sizeof none, PROT_READ, MAP_SHARED, file, 0);
  ::close(file);
  return memory == MAP_FAILED ? &none : static_cast<const std::atomic<int64_t>*>(memory);
}

int64_t offset_seconds() {
  static const std::atomic<int64_t>* const offset = shared_offset();
  return *offset;
}

using ClockGettime = int (*)(clockid_t, timespec*);

int true_time(clockid_t clock, timespec* time) {
  static const auto next = reinterpret_cast<ClockGettime>(::dlsym(RTLD_NEXT, "clock_gettime"));
  return next(clock, time);
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int result = true_time(clock, time);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) time->tv_sec += offset_seconds();
  return result;
}

int gettimeofday(timeval* time, void*) noexcept {
  timespec now{};
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* stored) noexcept {
  timespec now{};
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  if (stored) *stored = now.tv_sec;
  return now.tv_sec;
}
}
