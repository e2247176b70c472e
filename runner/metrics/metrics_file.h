#pragma once

#include <cstdint>
#include <filesystem>

#include "base/files.h"
#include "metrics/step_record.h"

namespace trainyard::metrics {

/// `<folder>/metrics.jsonl`, one line a step in the order of steps. Written by rank 0 alone, by one thread.
/// Invariant: up to good_bytes_ the file is whole lines; a line that could not be written whole is cut off again.
class MetricsFile {
 public:
  /// Opens the file, making the folder. Lines after `resumed_step` and a torn last line (of a run that was killed) are
  /// cut off, 0 = all: what follows continues the steps before it. Throws InputError where the folder cannot be
  /// written.
  MetricsFile(const std::filesystem::path& folder, int64_t resumed_step);

  /// Appends one line and hands it to the system at once, so that `tail -f` and a crash lose nothing. A full disk does
  /// not stop training: the first loss is logged as a warning, and lines are tried again with each step.
  void append(const StepRecord& record);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  UniqueFd fd_;
  int64_t good_bytes_ = 0;
  bool is_failing_ = false;
};

}  // namespace trainyard::metrics
