#include "models/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/json_depth.h"
#include "base/large_numbers.h"
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

constexpr const char* kLayerTypes = "layer_types";

/// transformers 5 also spells out what follows from the other fields.
json layer_types_of(const ModelConfig& config) {
  json types = json::array();
  for (int64_t layer = 0; layer < config.layers; ++layer)
    types.push_back(window_of(config, layer) > 0 ? "sliding_attention" : "full_attention");
  return types;
}

/// Where they differ from the other fields, neither is to be guessed.
void check_layer_types(const Fields& fields, const ModelConfig& config) {
  if (!fields.has(kLayerTypes)) return;
  const json expected = layer_types_of(config);
  fields.require(kLayerTypes, expected, "by the other fields it must be " + expected.dump());
}

/// All that is ours to say of a model.
json fields_of(const ModelConfig& config) {
  const Family& family = family_of(config);
  json fields = family.write(config);
  fields["architectures"] = {family.architecture};
  fields["model_type"] = family.name;
  return fields;
}

/// Brings `document`, which means the fields `said`, to mean `now`. What it leaves out, or has null, is written too:
/// that may follow from what changes.
void write_changes(const json& said, const json& now, nlohmann::ordered_json& document) {
  const auto differs = [&](const std::string& key) { return said.value(key, json()) != now.value(key, json()); };
  if (differs("rope_theta") || differs("rope_scaling"))  // other spellings would count before ours
    for (const char* const key : {"rope_theta", "rope_scaling", "rope_parameters", "original_max_position_embeddings"})
      document.erase(key);
  for (const auto& [key, value] : now.items())
    if (differs(key) || !document.contains(key) || document[key].is_null()) document[key] = value;
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
  return fields_of(config).dump(2) + "\n";
}

std::string to_hugging_face(const ModelConfig& config, const std::string& given) {
  const ModelConfig before = given.empty() ? ModelConfig{} : parse_config(given, "config.json");
  if (given.empty() || before.family != config.family) return to_hugging_face(config);
  auto document = nlohmann::ordered_json::parse(with_large_numbers_held(given));
  if (const json said = fields_of(before), now = fields_of(config); said != now) write_changes(said, now, document);
  document["architectures"] = {family_of(config).architecture};
  if (document.contains(kLayerTypes) && !document[kLayerTypes].is_null()) document[kLayerTypes] = layer_types_of(config);
  return with_large_numbers_released(document.dump(2)) + "\n";
}

}  // namespace trainyard::models
