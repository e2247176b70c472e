#pragma once

#include <filesystem>
#include <memory>
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
  std::string config_json;  ///< of the model, as Hugging Face spells it
  std::string tokenizer;    ///< data.tokenizer; "" where the data is pre-tokenised
  /// What stands beside the weights, on the ranks that may write it. Null: nothing, or nowhere.
  std::shared_ptr<const checkpoint::FilesBeside> files;
  std::string configuration;           ///< of the run, as --print-config prints it
  std::filesystem::path weights = {};  ///< what it began from, with its small files; "": none
};

/// Model and optimizer, of a loop that is not ours, and what that puts back. `config_json`: as Description's.
checkpoint::Snapshot snapshot_of(const shard::Engine& engine, optim::AdamW& optimizer, const Progress& progress,
                                 const std::string& config_json);
Progress restore(shard::Engine& engine, optim::AdamW& optimizer, const checkpoint::Checkpoint& checkpoint,
                 const models::ModelConfig& model);

/// All that a resumed run needs. Refers to the tensors, copies none.
checkpoint::Snapshot snapshot_of(const Parts& parts, const Progress& progress, const Description& description);

/// The whole tensor of which `shard`, of a snapshot, has this rank's rows. Collective.
Tensor gather_whole(const shard::Engine& engine, const checkpoint::Shard& shard);

/// What resuming leaves as a fresh run has it (checkpoint.exclude).
struct Excluded {
  bool optimizer = false, data = false, progress = false;
};
Excluded excluded_of(const std::string& words);

/// Puts everything back, each rank its rows, whatever world size saved it; of a checkpoint without an optimizer the
/// rest. Moments of parameters that were frozen when it was saved stay zero, and rank 0 says so. Throws InputError
/// where the checkpoint is of another model, with `instead` as what would be right, or of other data.
Progress restore(Parts& parts, const checkpoint::Checkpoint& checkpoint, const models::ModelConfig& model,
                 const Excluded& excluded = {}, const std::string& instead = "give the model of the checkpoint");

/// The snapshot without what only further training needs, and a checkpoint of such a one.
checkpoint::Snapshot model_only(checkpoint::Snapshot snapshot);
[[nodiscard]] bool is_model_only(const checkpoint::Checkpoint& checkpoint);

/// The parameters alone.
void fill_from_checkpoint(shard::Engine& engine, const checkpoint::Checkpoint& checkpoint);

}  // namespace trainyard::train
