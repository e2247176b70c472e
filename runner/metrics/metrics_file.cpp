#include "metrics/metrics_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>

#include "base/error.h"

namespace trainyard::metrics {
namespace fs = std::filesystem;
namespace {

/// Where the first line begins that is after `resumed_step` or torn. Lines that are whole but not ours are left alone.
int64_t bytes_to_keep(const fs::path& path, int64_t resumed_step) {
  const MappedFile file(path);
  std::string_view rest = file.text();
  int64_t kept = 0;
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    const auto step = step_of_json_line(rest.substr(0, end));
    if (end == std::string_view::npos || (step && *step > resumed_step)) break;
    kept += static_cast<int64_t>(end) + 1;
    rest.remove_prefix(end + 1);
  }
  return kept;
}

[[noreturn]] void fail(const fs::path& path, int error) {
  throw InputError(fmt::format("metrics.dir: {}: {}", path.string(), std::strerror(error)));
}

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

MetricsFile::MetricsFile(const fs::path& folder, int64_t resumed_step) : path_(folder / "metrics.jsonl") {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail(folder, error.value());
  fd_ = UniqueFd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd_.valid()) fail(path_, errno);
  good_bytes_ = resumed_step == 0 ? 0 : bytes_to_keep(path_, resumed_step);
  // One call, so a kill leaves the old length or the new one: no temporary copy is needed.
  if (::ftruncate(fd_.get(), good_bytes_) != 0) fail(path_, errno);
}

void MetricsFile::append(const StepRecord& record) {
  const std::string line = to_json_line(record) + "\n";
  if (write_all(fd_.get(), line)) {
    good_bytes_ += static_cast<int64_t>(line.size());
    is_failing_ = false;
    return;
  }
  const int error = errno;
  if (!is_failing_)
    spdlog::warn("{}: step {} could not be written: {}; training goes on", path_.string(), record.step,
                 std::strerror(error));
  is_failing_ = true;
  // What was written of the line would be glued to the next one. If even this fails, a reader drops one bad line.
  static_cast<void>(::ftruncate(fd_.get(), good_bytes_) == 0);
}

}  // namespace trainyard::metrics
