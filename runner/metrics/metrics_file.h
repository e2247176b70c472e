#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "metrics/append_file.h"
#include "metrics/step_record.h"

namespace trainyard::metrics {

/// `<folder>/metrics.jsonl`, one line a step in the order of steps. Written by rank 0 alone, by one thread.
class MetricsFile {
 public:
  /// Opens the file, making the folder. Lines after `resumed_step` and a torn last line (of a run that was killed) are
  /// cut off: what follows continues the steps before it. A run from its start, 0, leaves the file of a run before it
  /// as metrics.jsonl.1, or the next free number, and logs a warning. Throws InputError where the folder cannot be
  /// written.
  MetricsFile(const std::filesystem::path& folder, int64_t resumed_step);

  /// Appends one line, as AppendFile does.
  void append(const StepRecord& record);

  [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }
  [[nodiscard]] const std::string& error() const { return file_.error(); }

 private:
  AppendFile file_;
};

}  // namespace trainyard::metrics
