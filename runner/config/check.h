#pragma once

#include "config/load.h"

namespace trainyard::config {

/// Judges the values of a training run together: what load() cannot see one by one, and what this build does not offer.
/// Pure. Throws InputError that begins with where the value came from.
void check(const Loaded& loaded);

/// The same for a plan: data need not be given, and the device and its network may be ones that this build lacks.
void check_for_plan(const Loaded& loaded);

/// The same for so many ranks: training.accumulation_steps, or training.batch_size where that is 0, is what
/// training.global_batch_size leaves for it, where that is given. Throws InputError where it does not divide, and where
/// all three are given and one is not the product of the others.
Loaded for_world(Loaded loaded, int world);

/// Whether checkpoint.resume is the path of a checkpoint, and no word.
bool names_checkpoint(const Checkpoint& settings);

/// Whether the two are different keys of which only one may be given, as data.path and data.tokens.
bool excludes(const Key& one, const Key& other);

}  // namespace trainyard::config
