#pragma once

#include "config/load.h"

namespace trainyard::config {

/// Judges the values of a training run together: what load() cannot see one by one, and what this build does not offer.
/// Pure. Throws InputError that begins with where the value came from.
void check(const Loaded& loaded);

}  // namespace trainyard::config
