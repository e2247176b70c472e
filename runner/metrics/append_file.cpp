#include "metrics/append_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/links.h"
#include "base/open_file.h"

namespace trainyard::metrics {
namespace fs = std::filesystem;
namespace {

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

AppendFile::AppendFile(fs::path path, const char* setting) : path_(std::move(path)), setting_(setting) {
  std::error_code error;
  fs::create_directories(path_.parent_path(), error);
  if (error) fail(path_.parent_path(), error.value());
  fd_ = open_to_write(path_, O_WRONLY | O_CREAT | O_APPEND);
  if (!fd_.valid()) fail(path_, errno);
  good_bytes_ = static_cast<int64_t>(fs::file_size(path_));
}

void AppendFile::cut(int64_t bytes) {
  if (::ftruncate(fd_.get(), bytes) != 0) fail(path_, errno);
  good_bytes_ = bytes;
}

void AppendFile::append(std::string_view record, int64_t step) {
  if (write_all(fd_.get(), record)) {
    good_bytes_ += static_cast<int64_t>(record.size());
    if (!error_.empty()) spdlog::warn("{}; it is written again from step {} on", error_, step);
    error_.clear();
    return;
  }
  const int error = errno;
  if (error_.empty()) {
    error_ = fmt::format("{}: steps from {} on are missing: {}", path_.string(), step, std::strerror(error));
    spdlog::warn("{}: step {} could not be written: {}; training goes on", path_.string(), step, std::strerror(error));
  }
  // What was written of it would be glued to the next one. If even this fails, a reader drops one bad record.
  static_cast<void>(::ftruncate(fd_.get(), good_bytes_) == 0);
}

void AppendFile::fail(const fs::path& path, int error) const {
  if (const fs::path link = dangling_link(path); !link.empty()) {
    std::error_code ignored;
    throw InputError(fmt::format("{}: {} is a symbolic link to {}, which is not there", setting_, link.string(),
                                 fs::read_symlink(link, ignored).string()));
  }
  throw InputError(fmt::format("{}: {}: {}", setting_, path.string(), std::strerror(error)));
}

}  // namespace trainyard::metrics
