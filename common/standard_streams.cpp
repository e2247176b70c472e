#include "common/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

namespace trainyard {

void keep_standard_streams() {
  constexpr int kModes[] = {O_RDONLY, O_RDONLY, O_WRONLY};  // stdout's results cannot be written; stderr goes nowhere
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (::fcntl(fd, F_GETFD) == -1 && ::open("/dev/null", kModes[fd]) != fd) return;
}

}  // namespace trainyard
