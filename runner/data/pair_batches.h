#pragma once

#include <memory>

#include "data/loaders.h"
#include "tensor/safetensors.h"

namespace trainyard::data {

/// Whether a file of token_batches() holds pairs: it has an attention_mask.
bool holds_pairs(const SafetensorsFile& file);

/// token_batches() of pairs:
///   input_ids, attention_mask  [rows, source]  the mask is 1 for real tokens and 0 for the padding behind them
///   labels                     [rows, tokens]  taken as targets: not shifted, kIgnored = nothing
/// with train. before them and steps in front of the shape: a batch a step.
std::unique_ptr<Loader> pair_batches(SafetensorsFile file, const TokenBatchOptions& options);

}  // namespace trainyard::data
