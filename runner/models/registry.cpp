#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cctype>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "models/family.h"
#include "models/language_model.h"

namespace trainyard::models {

// Each in the file of its name.
const Family &llama(), &mistral(), &mnist(), &qwen2(), &qwen3(), &t5(), &tutorial();

std::span<const Family* const> families() {
  static const std::array all{&llama(), &mistral(), &qwen2(), &qwen3(), &t5(), &tutorial(), &mnist()};
  return all;
}

namespace {

/// Case and marks aside: "Llama-3.1-8B" and "llama3_1_8b" are llama3.1-8b.
std::string plain(const std::string& name) {
  std::string plain;
  for (const char c : name)
    if (c != '-' && c != '_' && c != '.') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return plain;
}

}  // namespace

const Family& family_of(const ModelConfig& config) {
  for (const Family* const family : families())
    if (family->name == config.family) return *family;
  throw std::invalid_argument(fmt::format("models: there is no family '{}'", config.family));
}

std::unique_ptr<Model> build(const ModelConfig& config) {
  return family_of(config).build(config);
}

LanguageModel& language_model(Model& model) {
  if (auto* const found = dynamic_cast<LanguageModel*>(&model)) return *found;
  throw InputError(fmt::format("a {} model makes no text", model.config().family));
}

ModelConfig preset(const std::string& name) {
  std::vector<std::string> known;
  for (const Family* const family : families())
    for (const Preset& preset : family->presets) {
      if (plain(preset.name) == plain(name)) return preset.config;
      known.push_back(preset.name);
    }
  const auto near = nearest(name, known);
  throw InputError(fmt::format("model.preset '{}' is not known{}; known are {}", name,
                               near ? fmt::format(", did you mean '{}'?", *near) : "", fmt::join(known, ", ")));
}

int64_t parameter_count(const ModelConfig& config) {
  const std::unique_ptr<Model> model = build(config);
  int64_t count = 0;
  for (const nn::Parameter* const parameter : model->parameters()) count += parameter->count();
  return count;
}

}  // namespace trainyard::models
