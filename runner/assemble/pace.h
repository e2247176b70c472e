#pragma once

#include <cstdint>

#include "data/loader.h"

namespace trainyard::train {

/// How far a run is in its data after so many steps. The size of a step (ranks, rows a rank, accumulation) may have
/// been another one before the step that the run was resumed at. For data that has epochs; else there are no whole
/// ones.
class Pace {
 public:
  explicit Pace(const data::Loader& loader);
  /// It begins at `step`, the last of a run of any size, which left `loader` where it is now.
  Pace(const data::Loader& loader, int64_t step);

  /// Rows that are taken after `step` steps, where the short end of an epoch counts as Loader::rows_per_epoch() says.
  [[nodiscard]] int64_t rows(int64_t step) const { return begin_rows_ + (step - begin_step_) * rows_per_step_; }
  /// Whole passes over the data after `step` steps.
  [[nodiscard]] int64_t epochs(int64_t step) const { return rows(step) / rows_per_epoch_; }
  /// Steps of the epoch under way, of the present size, before `step` + 1.
  [[nodiscard]] int64_t steps_of_epoch(int64_t step) const { return rows(step) % rows_per_epoch_ / rows_per_step_; }
  [[nodiscard]] int64_t steps_an_epoch() const { return (rows_per_epoch_ + rows_per_step_ - 1) / rows_per_step_; }
  /// Steps of the whole run, those before it was resumed too, until so many epochs, or such a part of one, are done.
  [[nodiscard]] int64_t steps_until(double epochs) const;

 private:
  int64_t rows_per_step_, rows_per_epoch_;
  int64_t begin_step_ = 0, begin_rows_ = 0;
};

}  // namespace trainyard::train
