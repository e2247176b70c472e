#include "launch/termination_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/files.h"
#include "base/text.h"

namespace trainyard::launch {
namespace {

constexpr size_t kMaxBytes = 2048;  // the kubelet keeps 4,096 bytes of it, which two of our lines fit into

}  // namespace

std::string one_line(std::string_view error) {
  std::string line(trim(error).substr(0, kMaxBytes));
  std::ranges::replace_if(
      line, [](char c) { return c == '\n' || c == '\r' || c == '\0'; }, ' ');
  return line;
}

void write_termination_log(std::string_view error) {
  const char* const chosen = std::getenv("TRAINYARD_TERMINATION_LOG");
  // Never created: outside of a pod nobody looks for it.
  const UniqueFd file(::open(chosen && *chosen ? chosen : "/dev/termination-log", O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (!file.valid()) return;
  const std::string line = one_line(error) + "\n";
  if (::write(file.get(), line.data(), line.size()) < 0) return;  // the log on stderr has it as well
}

}  // namespace trainyard::launch
