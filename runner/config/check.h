#pragma once

#include "config/load.h"

namespace trainyard::config {

/// Judges the values of a training run together: what load() cannot see one by one, and what this build does not offer.
/// Pure. Throws InputError that begins with where the value came from.
void check(const Loaded& loaded);

/// The same for a plan: data need not be given, and the device and its network may be ones that this build lacks.
void check_for_plan(const Loaded& loaded);

/// The same for so many ranks: training.accumulation_steps is what training.global_batch_size comes to, where that is
/// given. Throws InputError where it does not divide.
Loaded for_world(Loaded loaded, int world);

/// Gives keys that only say something beside another (activation_checkpointing.n beside mode every_n) their defaults
/// again, where what they are beside has another value from a stronger source: flags go before files, and both before
/// what another program has by default. What check() would else refuse, nobody contradicts himself in.
void drop_overridden(Loaded& loaded);

/// Whether the two are different keys of which only one may be given, as data.path and data.tokens.
bool excludes(const Key& one, const Key& other);

}  // namespace trainyard::config
