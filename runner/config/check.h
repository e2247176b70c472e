#pragma once

#include "config/load.h"

namespace trainyard::config {

/// Judges the values of a training run together: what load() cannot see one by one, and what this build does not offer.
/// Pure. Throws InputError that begins with where the value came from.
void check(const Loaded& loaded);

/// Judges parallel.shard and parallel.replicate against the number of ranks that were started. Throws InputError:
/// "train.yaml:14: parallel.shard is 6, but 4 processes were started; use 1, 2, 4, or -1 for all".
void check_world(const Loaded& loaded, int world);

}  // namespace trainyard::config
