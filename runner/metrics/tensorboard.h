#pragma once

#include <cstdint>
#include <filesystem>

#include "metrics/append_file.h"
#include "metrics/step_record.h"

namespace trainyard::metrics {

/// The scalars of each step as an event file of TensorBoard: `tensorboard --logdir FOLDER` reads it while it grows.
/// Tags are the keys of metrics.jsonl, values float32. One file a run, whose name ends with .trainyard: a resumed run
/// goes on in it, without what came after its step. Written by rank 0 alone, by one thread.
class TensorBoard {
 public:
  /// Opens the file that `folder` has of an earlier start, cut back to `resumed_step` (0 = all is cut off), or makes
  /// one. Throws InputError where the folder cannot be written.
  TensorBoard(const std::filesystem::path& folder, int64_t resumed_step);

  void append(const StepRecord& record);

  [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }

 private:
  AppendFile file_;
};

}  // namespace trainyard::metrics
