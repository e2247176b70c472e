#pragma once

#include <string>

#include "models/config.h"

namespace trainyard::models {

/// The params.json that Meta's programs build this Llama from. Throws InputError, naming the field, for what they cannot
/// be told: another family, a head_dim of its own, another scaling of RoPE than Llama 3's, a sliding window.
std::string meta_params(const ModelConfig& config);

}  // namespace trainyard::models
