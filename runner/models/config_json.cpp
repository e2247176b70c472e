#include "models/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/json_depth.h"
#include "models/family.h"
#include "models/training_fields.h"

namespace trainyard::models {
namespace {

using nlohmann::json;

json parsed(std::string_view text, const std::filesystem::path& path) {
  if (!is_shallow_json(text))
    throw InputError(path.string() + ": not JSON that anybody means: its brackets are too deep");
  try {
    json document = json::parse(text);
    if (document.is_object()) return document;
  } catch (const json::parse_error& error) {
    throw InputError(fmt::format("{}: not JSON: {}", path.string(), error.what()));
  }
  throw InputError(fmt::format("{}: a JSON object is needed", path.string()));
}

const Family& family_named_in(const Fields& fields) {
  const std::string type = fields.text("model_type", "");
  std::vector<std::string> known;
  for (const Family* const family : families()) {
    if (family->name == type) return *family;
    known.push_back(family->name);
  }
  fields.fail("model_type", fmt::format("is '{}'; known are {}", type, fmt::join(known, ", ")));
}

/// transformers 5 also spells out what follows from the other fields; where the two differ, neither is to be guessed.
void check_layer_types(const Fields& fields, const ModelConfig& config) {
  if (!fields.has("layer_types")) return;
  json expected = json::array();
  for (int64_t layer = 0; layer < config.layers; ++layer)
    expected.push_back(window_of(config, layer) > 0 ? "sliding_attention" : "full_attention");
  fields.require("layer_types", expected, "by the other fields it must be " + expected.dump());
}

}  // namespace

ModelConfig parse_config(std::string_view text, const std::filesystem::path& path) {
  const json document = parsed(text, path);
  const Fields fields(document, path.string());
  const Family& family = family_named_in(fields);
  ModelConfig config = family.read(fields);
  config.family = family.name;
  config.untrainable = untrainable_field(document, path.string(), family);
  check_layer_types(fields, config);
  return config;
}

const ModelConfig& for_training(const ModelConfig& config) {
  if (!config.untrainable.empty()) throw InputError(config.untrainable);
  return config;
}

std::string to_hugging_face(const ModelConfig& config) {
  const Family& family = family_of(config);
  json document = family.write(config);
  document["architectures"] = {family.architecture};
  document["model_type"] = family.name;
  return document.dump(2) + "\n";
}

}  // namespace trainyard::models
