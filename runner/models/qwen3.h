#pragma once

#include "models/decoder.h"

namespace trainyard::models {

std::unique_ptr<LanguageModel> build_qwen3(const ModelConfig& config);

}  // namespace trainyard::models
