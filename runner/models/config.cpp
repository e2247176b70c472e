#include "models/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/json_depth.h"
#include "models/family.h"

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
  check_layer_types(fields, config);
  return config;
}

std::string to_hugging_face(const ModelConfig& config) {
  const Family& family = family_of(config);
  json document = family.write(config);
  document["architectures"] = {family.architecture};
  document["model_type"] = family.name;
  return document.dump(2) + "\n";
}

LearnsFrom learns_from(const ModelConfig& config) {
  return family_of(config).learns_from;
}

int64_t window_of(const ModelConfig& config, int64_t layer) {
  return layer >= config.first_windowed_layer ? config.sliding_window : 0;
}

double flops_per_row(const ModelConfig& c, const RowLengths& lengths) {
  if (const Family& family = family_of(c); family.flops_per_row) return family.flops_per_row(c, lengths);
  const int64_t block =
      2 * c.hidden_size * c.head_dim * (c.heads + c.kv_heads) + 3 * c.hidden_size * c.intermediate_size;
  const int64_t matrices = c.layers * block + c.vocab_size * c.hidden_size;
  int64_t keys = 0;  // that a token sees, over all layers
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    const int64_t window = window_of(c, layer);
    keys += window > 0 ? std::min(window, lengths.tokens) : lengths.tokens;
  }
  return static_cast<double>(lengths.tokens) *
         (6.0 * static_cast<double>(matrices) + 12.0 * static_cast<double>(c.heads * c.head_dim * keys));
}

}  // namespace trainyard::models
