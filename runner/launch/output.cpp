#include "launch/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "base/error.h"
#include "base/open_file.h"
#include "common/write_all.h"

namespace trainyard::launch {
namespace {

/// What nobody reads any more is dropped: a closed terminal must not end the training.
void pass_on(int fd, std::string_view bytes) {
  static_cast<void>(write_all(fd, bytes, WhenFull::Wait));
}

}  // namespace

Stream::Stream(int target, std::string prefix, const std::string& log) : target_(target), lines_(std::move(prefix)) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::system_category(), "pipe2");
  reading_ = UniqueFd(ends[0]);
  child_end_ = UniqueFd(ends[1]);
  if (::fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) throw std::system_error(errno, std::system_category(), "fcntl");
  if (log.empty()) return;
  log_ = open_to_write(log, O_WRONLY | O_CREAT | O_APPEND);
  if (!log_.valid())
    throw InputError(fmt::format("--log-dir: cannot write {}: {}", log, std::system_category().message(errno)));
}

void Stream::pump() {
  std::array<char, size_t{64} << 10> bytes;
  for (;;) {
    const ssize_t count = ::read(reading_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) break;
    const std::string_view come(bytes.data(), static_cast<size_t>(count));
    if (log_.valid()) pass_on(log_.get(), come);
    pass_on(target_, lines_.feed(come));
    if (come.size() < bytes.size()) return;  // the others' turn
  }
  pass_on(target_, lines_.finish());
  reading_.reset();
}

}  // namespace trainyard::launch
