#pragma once

#include "assemble/world.h"
#include "checkpoint/reader.h"
#include "config/load.h"
#include "models/config.h"
#include "train/snapshot.h"

namespace trainyard::train {

/// A run whose checkpoints are described.
struct Described {
  const config::Loaded& loaded;
  const models::ModelConfig& model;
  const World& world;
};

/// What its checkpoints hold of where it comes from. The files beside the weights are read at once, as they may have
/// gone by the time of a save, and by the first rank of each host, since one of these leads each folder of checkpoints.
/// Rank 0 warns of what stays behind. Throws InputError where a file cannot be read.
Description description_of(const Described& run);

/// The same of a run that goes on from `checkpoint`. Where the run names no folder of a model, what that one came from
/// goes on in the checkpoint; what the run says itself counts before.
Description going_on_from(const checkpoint::Checkpoint& checkpoint, Description description, const Described& run);

}  // namespace trainyard::train
