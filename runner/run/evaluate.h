#pragma once

#include <filesystem>
#include <optional>

#include "assemble/world.h"
#include "config/config.h"

namespace trainyard::train {

struct Evaluation {
  std::filesystem::path model;       ///< a Hugging Face folder, or
  std::filesystem::path checkpoint;  ///< a checkpoint of ours, or a folder of them; one of the two
  std::filesystem::path tokens;      ///< safetensors with input_ids [rows, tokens] (docs/tokenizers-and-data.md)
  std::optional<std::filesystem::path> dump;  ///< safetensors: logits [rows, tokens, vocab], and gradients where wanted
  bool gradients = false;                     ///< grad.<name> of the mean loss, unclipped
  config::Precision param_dtype = config::Precision::Float32;
  int tensor = 1;  ///< ranks that split each layer, and so have the same rows; the others share parameters

  [[nodiscard]] const std::filesystem::path& weights() const { return checkpoint.empty() ? model : checkpoint; }
};

struct Evaluated {
  double loss = 0;                   ///< mean over the valid targets, natural logarithm
  std::optional<double> perplexity;  ///< of a model that makes text, whose loss is a cross-entropy; of others none
  int64_t tokens = 0;                ///< valid targets
};

/// Loss of a model over the rows of a file, dealt round robin over the ranks that do not split layers with each other.
/// Collective; rank 0 writes the dump. Throws InputError for what the user has to mend, and NotFiniteError where the
/// loss is NaN or infinite; the dump is written by then.
Evaluated evaluate(const Evaluation& evaluation, const World& world);

}  // namespace trainyard::train
