#pragma once

#include <filesystem>
#include <string>

#include "assemble/sharded_model.h"
#include "assemble/world.h"
#include "config/config.h"

namespace trainyard::train {

/// A model to compute with, not to train.
struct ModelSource {
  std::filesystem::path model;       ///< a Hugging Face folder, or
  std::filesystem::path checkpoint;  ///< a checkpoint of ours, or a folder of them; one of the two
  config::Precision param_dtype = config::Precision::Float32;
  int tensor = 1;  ///< ranks that split each layer; the others share parameters

  [[nodiscard]] const std::filesystem::path& weights() const { return checkpoint.empty() ? model : checkpoint; }
};

struct LoadedModel {
  ShardedModel sharded;
  std::filesystem::path weights;  ///< the folder, or the checkpoint that was found
  std::string tokenizer;          ///< its path, as the folder or the checkpoint names it; "": none
};

/// Reads the weights; each rank keeps its part. Collective.
/// Throws InputError for a `tensor` that does not divide the ranks or the model, and for weights that do not fit it.
LoadedModel load_model(const ModelSource& source, const World& world);

}  // namespace trainyard::train
