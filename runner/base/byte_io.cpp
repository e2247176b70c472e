#include "base/byte_io.h"

#include <fcntl.h>
#include <fmt/format.h>
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

FileSink::FileSink(fs::path path)
    : path_(std::move(path)), fd_(open_to_write(path_, O_WRONLY | O_CREAT | O_TRUNC)) {
  if (!fd_.valid()) fail("open", errno);
}

void FileSink::write(std::span<const std::byte> bytes) {
  const Written written = write_all(fd_.get(), bytes);
  written_ += written.bytes;
  if (!written.is_complete()) fail("write", written.error);
}

void FileSink::finish() {
  if (::fsync(fd_.get()) != 0) fail("fsync", errno);
  // NFS and quotas may tell of a full disk only here.
  if (::close(fd_.release()) != 0 && errno != EINTR) fail("close", errno);
}

void FileSink::fail(const char* what, int error) const {
  const std::error_code reason(error, std::generic_category());
  throw fs::filesystem_error(fmt::format("{} after {} bytes", what, written_), path_, reason);
}

FileSource::FileSource(fs::path path) : path_(std::move(path)), fd_(open_to_read(path_)) {
  struct stat info {};
  if (::fstat(fd_.get(), &info) != 0)
    throw InputError(fmt::format("{}: {}", path_.string(), std::strerror(errno)));
  size_ = static_cast<uint64_t>(info.st_size);
}

void FileSource::read(uint64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    const ssize_t n = ::pread(fd_.get(), into.data(), into.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      throw InputError(fmt::format("{}: reading at byte {}: {}", path_.string(), offset, std::strerror(errno)));
    if (n == 0)
      throw InputError(fmt::format("{}: ends at byte {}, {} more were expected", path_.string(), offset, into.size()));
    into = into.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
}

}  // namespace trainyard
