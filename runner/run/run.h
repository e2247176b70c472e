#pragma once

#include "assemble/world.h"
#include "config/load.h"
#include "train/trainer.h"

namespace trainyard::train {

/// A training run from its configuration to its last checkpoint: model, data and optimizer are made, a checkpoint is
/// resumed where there is one, and the loop goes on from there. Collective: every rank of the world calls it.
/// Prints for people on rank 0. Throws what base/error.h names; TerminatedError after a SIGTERM, the checkpoint saved.
void run(const config::Loaded& loaded, const World& world);

/// Prints, on rank 0, how the model would lie on the ranks (inspect.h), and does nothing else. Collective.
void inspect(const config::Loaded& loaded, const World& world);

}  // namespace trainyard::train
