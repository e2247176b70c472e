#include "common/write_all.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace trainyard {

Written write_all(int fd, std::span<const std::byte> bytes, WhenFull when_full) noexcept {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (count > 0) {
      done += static_cast<size_t>(count);
    } else if (count == 0) {
      return {done, EIO};  // a device that takes nothing and names no error: another try would be the same
    } else if (errno == EAGAIN && when_full == WhenFull::Wait) {
      pollfd entry{.fd = fd, .events = POLLOUT, .revents = 0};
      ::poll(&entry, 1, -1);  // where the reader has gone instead, the next write tells it
    } else if (errno != EINTR) {
      return {done, errno};
    }
  }
  return {done};
}

Written write_all(int fd, std::string_view text, WhenFull when_full) noexcept {
  return write_all(fd, std::as_bytes(std::span(text)), when_full);
}

}  // namespace trainyard
