#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "checkpoint/reader.h"
#include "checkpoint/snapshot.h"
#include "models/config.h"
#include "train/trainer.h"

namespace trainyard::train {

/// What of a run does not change, and belongs into its checkpoints: an export writes it beside the weights.
struct Description {
  std::string config_json;                   ///< of the model, as Hugging Face spells it
  std::string tokenizer;                     ///< data.tokenizer; "" where the data is pre-tokenised
  std::vector<std::string> tokenizer_files;  ///< its files, absolute
  std::string configuration;                 ///< of the run, as --print-config prints it
};

/// All that a resumed run needs. Refers to the tensors, copies none.
checkpoint::Snapshot snapshot_of(const Parts& parts, const Progress& progress, const Description& description);

/// Puts everything back, each rank its rows, whatever world size saved it. Throws InputError where the checkpoint is of
/// another model or other data.
Progress restore(Parts& parts, const checkpoint::Checkpoint& checkpoint, const models::ModelConfig& model);

/// The parameters alone.
void fill_from_checkpoint(shard::Engine& engine, const checkpoint::Checkpoint& checkpoint);

}  // namespace trainyard::train
