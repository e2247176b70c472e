#include "assemble/total_steps.h"

#include <fmt/format.h>

#include "base/error.h"

namespace trainyard::train {

int64_t total_steps_of(const config::Training& training, const data::Loader& loader, const Pace& pace) {
  const auto available = loader.steps_available();
  if (training.steps == 0) return available ? *available : pace.steps_until(training.epochs);
  if (available && training.steps > *available)
    throw InputError(fmt::format("training.steps is {}, but data.tokens has {} batches, one a step; use at most {}",
                                 training.steps, *available, *available));
  return training.steps;
}

int64_t total_steps_after(int64_t step, config::Training training, const data::Loader& loader, const Pace& pace) {
  const auto steps = training.steps;
  const auto epochs = training.epochs;
  int64_t total = total_steps_of(training, loader, pace);
  for (int64_t runs = 2; total < step; ++runs) {
    training.steps = steps * runs, training.epochs = epochs * static_cast<double>(runs);
    const int64_t longer = total_steps_of(training, loader, pace);
    if (longer == total) break;  // data.tokens ends it
    total = longer;
  }
  return total;
}

}  // namespace trainyard::train
