#include "launch/error_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/error.h"
#include "base/shortage.h"

namespace trainyard::launch {
namespace {
namespace fs = std::filesystem;

constexpr const char* kPrefix = "trainyard-launch-";

fs::path temporary_folder() {
  std::error_code missing;
  const fs::path parent = fs::temp_directory_path(missing);
  if (missing) throw InputError(fmt::format("TMPDIR names no folder: {}; set it to one", missing.message()));
  return parent;
}

/// Nothing, and errno as the call before has left it.
UniqueFd with_errno(UniqueFd closed) {
  const int error = errno;
  closed.reset();
  errno = error;
  return {};
}

/// Holds the folder's lock. Not valid, with errno set: EWOULDBLOCK where another process holds it, ENOENT where the
/// folder is gone, EPERM where it is another user's.
UniqueFd locked(const fs::path& folder) {
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat held {}, there{};
  if (!fd.valid() || ::fstat(fd.get(), &held) != 0) return {};
  if (held.st_uid != ::geteuid()) return errno = EPERM, UniqueFd();
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return with_errno(std::move(fd));
  // Whoever swept may have had the lock between our calls.
  if (::lstat(folder.c_str(), &there) != 0) return with_errno(std::move(fd));
  if (there.st_ino == held.st_ino) return fd;
  return errno = ENOENT, UniqueFd();
}

void remove_leftovers(const fs::path& parent) {
  std::error_code ignored;  // what cannot be removed stays, as it did
  for (fs::directory_iterator entry(parent, ignored), end; entry != end; entry.increment(ignored)) {
    if (!entry->path().filename().string().starts_with(kPrefix)) continue;
    if (const UniqueFd lock = locked(entry->path()); lock.valid()) fs::remove_all(entry->path(), ignored);
  }
}

}  // namespace

ErrorFolder::ErrorFolder() : ErrorFolder(temporary_folder()) {}

ErrorFolder::ErrorFolder(const fs::path& parent) {
  remove_leftovers(parent);
  constexpr int kTries = 100;  // of which another launcher, which sweeps, would have to be faster each time
  int error = 0;
  for (int i = 0; i < kTries; ++i) {
    std::string pattern = (parent / kPrefix).string() + "XXXXXX";
    if (!::mkdtemp(pattern.data())) {
      error = errno;
      break;
    }
    path_ = pattern;
    lock_ = locked(path_);
    error = lock_.valid() ? 0 : errno;
    if (error == EMFILE || error == ENFILE) break;
    if (error != EWOULDBLOCK && error != ENOENT) return;  // locked, or where there are no locks and nobody sweeps
  }
  if (!path_.empty()) ::rmdir(path_.c_str());
  const bool is_of_folder = error != EMFILE && error != ENFILE;
  throw InputError(fmt::format("no temporary folder can be made in {}: {}{}", parent.string(), text_with_remedy({error, std::system_category()}),
                               is_of_folder ? "; set TMPDIR to where one can" : ""));
}

ErrorFolder::~ErrorFolder() {
  std::error_code ignored;  // at worst a few bytes stay in the temporary folder
  fs::remove_all(path_, ignored);
}

std::string ErrorFolder::file_of(int local_rank) const {
  return (path_ / fmt::format("rank-{}", local_rank)).string();
}

std::string ErrorFolder::empty_file_of(int local_rank) const {
  write_file_atomically(file_of(local_rank), "");
  return file_of(local_rank);
}

}  // namespace trainyard::launch
