#pragma once

#include <filesystem>
#include <optional>

#include "assemble/world.h"
#include "run/loaded_model.h"

namespace trainyard::train {

struct Evaluation {
  ModelSource source;            ///< ranks that split its layers have the same rows
  std::filesystem::path tokens;  ///< safetensors with input_ids [rows, tokens] (docs/tokenizers-and-data.md)
  std::optional<std::filesystem::path> dump;  ///< safetensors: logits [rows, tokens, vocab], and gradients where wanted
  bool gradients = false;                     ///< grad.<name> of the mean loss, unclipped
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
