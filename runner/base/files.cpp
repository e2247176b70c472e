#include "base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/open_file.h"
#include "common/write_all.h"

namespace trainyard {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void throw_input(const fs::path& path, int error) {
  throw InputError(fmt::format("{}: {}", path.string(), std::strerror(error)));
}

[[noreturn]] void throw_system(const char* what, const fs::path& path, int error = errno) {
  throw fs::filesystem_error(what, path, std::error_code(error, std::generic_category()));
}

size_t size_of(const UniqueFd& fd, const fs::path& path) {
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) throw_input(path, errno);
  return static_cast<size_t>(info.st_size);
}

std::string kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return S_ISCHR(mode) || S_ISBLK(mode) ? "a device" : "something else";
}

}  // namespace

UniqueFd open_to_read(const fs::path& path) {
  // Without O_NONBLOCK the opening of a pipe waits for who writes into it.
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!fd.valid() && (errno == EACCES || errno == EPERM))
    throw DeniedError(fmt::format("{}: {}", path.string(), std::strerror(errno)));
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0) throw_input(path, errno);
  if (!S_ISREG(info.st_mode))
    throw InputError(fmt::format("{}: not a regular file but {}", path.string(), kind_of(info.st_mode)));
  return fd;
}

UniqueFd open_to_write(const fs::path& path, int flags) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode)))
    throw InputError(fmt::format("{}: not a regular file but {}", path.string(), kind_of(info.st_mode)));
  return UniqueFd(::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, 0644));
}

MappedFile::MappedFile(const fs::path& path) : path_(path) {
  const UniqueFd fd = open_to_read(path);
  size_ = size_of(fd, path);
  if (size_ == 0) return;  // mmap refuses an empty range
  void* const address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (address == MAP_FAILED) throw_input(path, errno);
  data_ = static_cast<const std::byte*>(address);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

std::string read_file(const fs::path& path, size_t limit_bytes) {
  const UniqueFd fd = open_to_read(path);
  const size_t size = size_of(fd, path);
  const auto check_size = [&](uint64_t bytes) {
    if (bytes > limit_bytes)
      throw InputError(
          fmt::format("{}: {} bytes, more than the {} this kind of file may have", path.string(), bytes, limit_bytes));
  };
  check_size(size);
  // The size is where to begin: files of /proc say that they have none, and any may be cut or grow while we read it.
  constexpr size_t kMore = 4096;
  std::string content(size + 1, '\0');
  size_t done = 0;
  for (;;) {
    if (done == content.size()) content.resize(done + kMore);
    const ssize_t n = ::read(fd.get(), content.data() + done, content.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_input(path, errno);
    if (n == 0) break;
    done += static_cast<size_t>(n);
    check_size(done);
  }
  content.resize(done);
  return content;
}

void write_file_atomically(const fs::path& path, std::string_view content) {
  const fs::path temporary = path.string() + fmt::format(".tmp.{}", ::getpid());
  try {
    const UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!fd.valid()) throw_system("open", path);
    if (const Written written = write_all(fd.get(), content); !written.is_complete())
      throw_system("write", path, written.error);
    if (::fsync(fd.get()) != 0) throw_system("fsync", path);
    fs::rename(temporary, path);
  } catch (...) {
    std::error_code ignored;  // the first failure is the one worth reporting
    fs::remove(temporary, ignored);
    throw;
  }
  sync_folder(path.has_parent_path() ? path.parent_path() : fs::path("."));
}

void sync_folder(const fs::path& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || ::fsync(fd.get()) != 0) throw_system("fsync", folder);
}

}  // namespace trainyard
