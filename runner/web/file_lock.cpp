#include "web/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "base/text.h"

namespace trainyard::web {
namespace fs = std::filesystem;
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPause{100};
constexpr std::chrono::seconds kTellAfter{10};

UniqueFd opened(const fs::path& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0664));
  if (!fd.valid()) throw InputError(fmt::format("{}: {}", path.string(), std::generic_category().message(errno)));
  return fd;
}

/// Whether the path still leads to the file that is locked: some versions of Python's filelock delete it.
bool is_still_there(const fs::path& path, int fd) {
  struct stat by_path {
  }, by_fd{};
  return ::stat(path.c_str(), &by_path) == 0 && ::fstat(fd, &by_fd) == 0 && by_path.st_ino == by_fd.st_ino &&
         by_path.st_dev == by_fd.st_dev;
}

bool has_locked(int fd) {
  return ::flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;  // else the file system keeps no locks
}

}  // namespace

FileLock::FileLock(const fs::path& path, std::chrono::milliseconds patience,
                   const std::function<uint64_t()>& progress) {
  fs::create_directories(path.parent_path());
  fd_ = opened(path);
  auto moved = Clock::now(), told = moved;
  uint64_t last = progress();
  while (!has_locked(fd_.get()) || !is_still_there(path, fd_.get())) {
    std::this_thread::sleep_for(kPause);
    const auto now = Clock::now();
    if (const uint64_t here = progress(); here != last) last = here, moved = now;
    if (now - moved > patience)
      throw PeerError(
          fmt::format("{}: another process holds this lock, and has downloaded nothing for {}; end it, or "
                      "look at what it waits for",
                      path.string(), human_duration(patience)));
    if (now - told > kTellAfter) {
      spdlog::info("{}: waiting for another process that downloads the same, {} so far", path.string(),
                   human_bytes(last));
      told = now;
    }
    if (!is_still_there(path, fd_.get())) fd_ = opened(path);
  }
}

}  // namespace trainyard::web
