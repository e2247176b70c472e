#pragma once

#include "models/decoder.h"

namespace trainyard::models {

std::unique_ptr<LanguageModel> build_llama(const ModelConfig& config);

}  // namespace trainyard::models
