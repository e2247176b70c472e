#include <fmt/format.h>

#include <stdexcept>

#include "base/error.h"
#include "models/llama.h"
#include "models/qwen3.h"

namespace trainyard::models {

std::unique_ptr<Model> build(const ModelConfig& config) {
  switch (config.family) {
    case Family::Llama:
      return build_llama(config);
    case Family::Qwen3:
      return build_qwen3(config);
  }
  throw std::logic_error("models::build: a family without a model");
}

LanguageModel& language_model(Model& model) {
  if (auto* const found = dynamic_cast<LanguageModel*>(&model)) return *found;
  throw InputError(fmt::format("a {} model makes no text", name_of(model.config().family)));
}

}  // namespace trainyard::models
