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
#include "common/write_all.h"

namespace trainyard::metrics {
namespace fs = std::filesystem;

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
  const Written written = write_all(fd_.get(), record);
  if (written.is_complete()) {
    good_bytes_ += static_cast<int64_t>(record.size());
    if (!error_.empty()) spdlog::warn("{}; it is written again from step {} on", error_, step);
    error_.clear();
    return;
  }
  if (error_.empty()) {
    const char* const reason = std::strerror(written.error);
    error_ = fmt::format("{}: steps from {} on are missing: {}", path_.string(), step, reason);
    spdlog::warn("{}: step {} could not be written: {}; training goes on", path_.string(), step, reason);
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
