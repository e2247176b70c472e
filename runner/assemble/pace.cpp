#include "assemble/pace.h"

#include <algorithm>
#include <cmath>

namespace trainyard::train {

Pace::Pace(const data::Loader& loader)
    : rows_per_step_(loader.sequences_per_step()), rows_per_epoch_(loader.rows_per_epoch()) {}

Pace::Pace(const data::Loader& loader, int64_t step) : Pace(loader) {
  const int64_t seen = loader.sequences_seen(), an_epoch = loader.sequences_per_epoch();
  begin_step_ = step;
  begin_rows_ = seen / an_epoch * rows_per_epoch_ + seen % an_epoch;
}

int64_t Pace::steps_until(double epochs) const {
  constexpr double kMostRows = 9e18;
  const double rows = std::min(std::ceil(epochs * static_cast<double>(rows_per_epoch_)), kMostRows);
  const int64_t left = std::max<int64_t>(std::llrint(rows) - begin_rows_, 0);
  return begin_step_ + (left + rows_per_step_ - 1) / rows_per_step_;
}

}  // namespace trainyard::train
