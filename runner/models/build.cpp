#include <stdexcept>

#include "models/llama.h"
#include "models/qwen3.h"

namespace trainyard::models {

std::unique_ptr<LanguageModel> build(const ModelConfig& config) {
  switch (config.family) {
    case Family::Llama:
      return build_llama(config);
    case Family::Qwen3:
      return build_qwen3(config);
  }
  throw std::logic_error("models::build: a family without a model");
}

}  // namespace trainyard::models
