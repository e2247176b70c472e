#include "metrics/metrics_file.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <string>
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

/// Moves what another run left in the way of a new one beside it, under the first number that is free. Gives `path`.
fs::path without_older_run(const fs::path& path, int64_t resumed_step) {
  std::error_code error;
  if (resumed_step > 0 || !fs::is_regular_file(path, error) || fs::file_size(path) == 0) return path;
  fs::path kept;
  for (int number = 1; kept.empty() || fs::exists(kept, error); ++number)
    kept = path.string() + "." + std::to_string(number);
  fs::rename(path, kept, error);
  if (error) throw InputError(fmt::format("metrics.dir: {}: {}", path.string(), error.message()));
  spdlog::warn("{}: holds the steps of another run, and this one begins at its first; they are kept in {}",
               path.string(), kept.filename().string());
  return path;
}

}  // namespace

MetricsFile::MetricsFile(const fs::path& folder, int64_t resumed_step)
    : file_(without_older_run(folder / "metrics.jsonl", resumed_step), "metrics.dir") {
  file_.cut(bytes_to_keep(file_.path(), resumed_step));
}

void MetricsFile::append(const StepRecord& record) {
  file_.append(to_json_line(record) + "\n", record.step);
}

}  // namespace trainyard::metrics
