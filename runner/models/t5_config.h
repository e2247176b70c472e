#pragma once

#include <vector>

#include "models/family.h"

// T5's config.json, sizes and arithmetic.
namespace trainyard::models {

ModelConfig read_t5(const Fields& fields);
nlohmann::json write_t5(const ModelConfig& config);

/// "t5-small" and its kin (v1.0), "t5-v1.1-small" and its kin.
std::vector<Preset> t5_presets();

/// 6 · parameters for each token that they multiply (the encoder's for the source, the decoder's and the head's for the
/// target, cross-attention's keys and values for the source), and 12 · heads · head_dim for each pair of query and key.
double t5_flops_per_row(const ModelConfig& config, const RowLengths& lengths);

}  // namespace trainyard::models
