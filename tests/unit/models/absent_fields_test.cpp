// Fields that a config.json leaves out, has null, or spells in another way mean what transformers takes them for.
#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "models/config.h"

namespace trainyard::models {
namespace {

using nlohmann::json;

/// What transformers took, and with which version: made by absent_fields, beside the file.
const json& reference() {
  static const json document = json::parse(read_file(TRAINYARD_ABSENT_FIELDS));
  return document;
}

json rope_scaling_of(const RopeScaling& scaling) {
  if (scaling.factor == 1) return nullptr;
  return {scaling.factor, scaling.low_freq_factor, scaling.high_freq_factor, scaling.original_length};
}

json taken(const ModelConfig& c) {
  if (c.family == "t5")
    return {{"decoder_layers", c.t5.decoder_layers},
            {"buckets", c.t5.buckets},
            {"max_distance", c.t5.max_distance},
            {"dropout", c.dropout},
            {"rms_norm_eps", c.rms_norm_eps},
            {"initializer_range", c.initializer_range},
            {"is_gated", c.t5.is_gated},
            {"scales_output", c.t5.scales_output}};
  return {{"kv_heads", c.kv_heads},
          {"head_dim", c.head_dim},
          {"max_positions", c.max_positions},
          {"rms_norm_eps", c.rms_norm_eps},
          {"initializer_range", c.initializer_range},
          {"tied_head", c.tied_head},
          {"rope_theta", c.rope_theta},
          {"rope_scaling", rope_scaling_of(c.rope_scaling)},
          {"window", {c.sliding_window, c.first_windowed_layer}}};
}

json smallest(const std::string& family) {
  json document = reference().at(family == "t5" ? "t5" : "decoder");
  document["model_type"] = family;
  return document;
}

}  // namespace

TEST_CASE("parse_config: what a field means that is absent, null or spelled otherwise, is what transformers takes",
          "[models]") {
  REQUIRE(reference().at("transformers") == "5.17.0");
  for (const json& row : reference().at("rows")) {
    json document = smallest(row.at("family"));
    document.update(row.at("patch"));
    CAPTURE(row.at("family"), row.at("patch").dump());
    if (row.contains("refused")) {
      CHECK_THROWS_WITH(parse_config(document.dump(), "config.json"),
                        Catch::StartsWith("config.json: " + row.at("refused").get<std::string>() + " is "));
      continue;
    }
    const ModelConfig config = parse_config(document.dump(), "config.json");
    CHECK(taken(config) == row.at("takes"));
    CHECK(taken(parse_config(to_hugging_face(config), "again")) == row.at("takes"));
  }
}

TEST_CASE("parse_config: a size of the model has no default in any family", "[models]") {
  const std::string family = GENERATE("llama", "mistral", "qwen2", "qwen3", "t5");
  const json whole = smallest(family);
  for (const auto& [key, size] : whole.items()) {
    if (key == "model_type") continue;
    json document = whole;
    document.erase(key);
    CAPTURE(family);
    CHECK_THROWS_WITH(parse_config(document.dump(), "config.json"),
                      "config.json: " + key + " is missing; a whole number above 0 is needed");
  }
}

}  // namespace trainyard::models
