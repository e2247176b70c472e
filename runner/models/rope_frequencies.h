#pragma once

#include <vector>

#include "models/config.h"

namespace trainyard::models {

/// Inverse wavelengths of the rotations, [head_dim / 2], in float32 as transformers computes them: 1 / θ^(2i/head_dim),
/// with Llama 3.1's scaling where the config asks for it.
std::vector<float> rope_frequencies(const ModelConfig& config);

}  // namespace trainyard::models
