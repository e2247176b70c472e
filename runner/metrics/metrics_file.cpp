#include "metrics/metrics_file.h"

#include <string_view>

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

}  // namespace

MetricsFile::MetricsFile(const fs::path& folder, int64_t resumed_step)
    : file_(folder / "metrics.jsonl", "metrics.dir") {
  file_.cut(resumed_step == 0 ? 0 : bytes_to_keep(file_.path(), resumed_step));
}

void MetricsFile::append(const StepRecord& record) {
  file_.append(to_json_line(record) + "\n", record.step);
}

}  // namespace trainyard::metrics
