#include "http/deadlines.h"

#include <sys/socket.h>

namespace trainyard::http {

void Deadlines::set(int fd, Clock::time_point deadline) {
  const MutexLock lock(mutex_);
  of_[fd] = deadline;
}

void Deadlines::remove(int fd) {
  const MutexLock lock(mutex_);
  of_.erase(fd);
}

size_t Deadlines::shut_down_overdue(Clock::time_point now) {
  const MutexLock lock(mutex_);  // also while shutting down: none of these can be closed meanwhile
  return std::erase_if(of_, [now](const auto& entry) {
    if (entry.second > now) return false;
    ::shutdown(entry.first, SHUT_RDWR);
    return true;
  });
}

bool Deadlines::empty() const {
  const MutexLock lock(mutex_);
  return of_.empty();
}

}  // namespace trainyard::http
