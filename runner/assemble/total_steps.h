#pragma once

#include <cstdint>

#include "assemble/pace.h"
#include "config/config.h"
#include "data/loader.h"

namespace trainyard::train {

/// training.steps, or what the epochs come to. Throws InputError where the data ends before.
int64_t total_steps_of(const config::Training& training, const data::Loader& loader, const Pace& pace);

/// The same of as many runs of this length, one after another, as reach `step`.
int64_t total_steps_after(int64_t step, config::Training training, const data::Loader& loader, const Pace& pace);

}  // namespace trainyard::train
