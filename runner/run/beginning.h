#pragma once

#include <optional>

#include "assemble/world.h"
#include "checkpoint/reader.h"
#include "config/config.h"
#include "train/snapshot.h"

namespace trainyard::train {

/// What a training goes on from.
struct Beginning {
  std::optional<checkpoint::Checkpoint> checkpoint;  ///< none: it begins with random or given weights
  Excluded excluded = {};                            ///< what of the checkpoint is left out
  bool is_own = false;                               ///< an earlier start of this job has saved it
  /// What would be right where the checkpoint does not fit.
  const char* instead = "choose another checkpoint.dir, or start anew with --checkpoint.resume never";
};

/// Looks for the checkpoint that a run begins with: what its own job has saved, else what checkpoint.resume names, else
/// the newest in checkpoint.dir, else checkpoint.initial_load_path. Collective: all ranks look, or, as
/// checkpoint.broadcast_from_rank0 says, rank 0 alone, which then reads for all.
/// Throws InputError for what is there and is no checkpoint, and PeerError where ranks do not answer within
/// checkpoint.timeout.
Beginning find_beginning(const config::Checkpoint& settings, const checkpoint::Naming& naming, const World& world);

}  // namespace trainyard::train
