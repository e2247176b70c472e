#include "models/config.h"

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "models/language_model.h"
#include "support/support.h"

namespace trainyard::models {
namespace {

using nlohmann::json;

json small() {
  return {{"model_type", "llama"},   {"vocab_size", 100},      {"hidden_size", 64},
          {"intermediate_size", 96}, {"num_hidden_layers", 2}, {"num_attention_heads", 4}};
}

ModelConfig parse(const json& document) {
  return parse_config(document.dump(), "config.json");
}

int64_t built_parameters(const ModelConfig& config) {
  const auto model = build(config);
  int64_t count = 0;
  for (const nn::Parameter* const parameter : model->parameters()) count += parameter->count();
  return count;
}

}  // namespace

TEST_CASE("parse_config: published models have their published sizes", "[models]") {
  if (test::test_data().empty()) return test::skip("no reference data");
  const json counts = json::parse(read_file(test::test_data() / "parity/parameter-counts.json")).at("models");
  int seen = 0;
  for (const auto& [name, expected] : counts.items()) {
    const std::string type = expected.at("model_type");
    if (type != "llama" && type != "qwen3") continue;
    CAPTURE(name);
    const auto path = test::test_data() / "configs" / (name + "_config.json");
    const ModelConfig config = parse_config(read_file(path), path);
    CHECK(parameter_count(config) == expected.at("parameters").get<int64_t>());
    CHECK(built_parameters(config) == expected.at("parameters").get<int64_t>());
    CHECK(parameter_count(parse_config(to_hugging_face(config), "again")) == parameter_count(config));
    ++seen;
  }
  CHECK(seen >= 6);
}

TEST_CASE("preset: every size of the table, in any spelling", "[models]") {
  const auto [name, parameters] = GENERATE(table<const char*, int64_t>({{"qwen3-0.6b", 596049920},
                                                                        {"Qwen3-1.7B", 1720574976},
                                                                        {"qwen3-4b", 4022468096},
                                                                        {"Llama-3.2-1B", 1235814400},
                                                                        {"llama3.2-3b", 3212749824},
                                                                        {"Llama-3.1-8B", 8030261248},
                                                                        {"llama2-7b", 6738415616},
                                                                        {"qwen3-tiny", 853376}}));
  CHECK(parameter_count(preset(name)) == parameters);
  CHECK_THROWS_WITH(preset("qwen3-0.6c"),
                    Catch::Contains("did you mean 'qwen3-0.6b'") && Catch::Contains("llama2-13b"));
}

TEST_CASE("parse_config: absent fields have their defaults", "[models]") {
  const ModelConfig llama = parse(small());
  CHECK(llama.kv_heads == 4);
  CHECK(llama.head_dim == 16);
  CHECK(llama.rope_theta == 10000);
  CHECK_FALSE(llama.tied_head);
  json qwen = small();
  qwen["model_type"] = "qwen3";
  CHECK(parse(qwen).head_dim == 128);
}

TEST_CASE("parse_config: says which field of which file is wrong", "[models]") {
  const auto [patch, message] = GENERATE(table<const char*, const char*>({
      {R"({"model_type": "gpt2"})", "config.json: model_type is 'gpt2'; known are llama and qwen3"},
      {R"({"hidden_size": null})", "config.json: hidden_size is missing"},
      {R"({"hidden_size": "64"})", "hidden_size is \"64\"; a whole number"},
      {R"({"vocab_size": -1})", "vocab_size is -1; a whole number from 1"},
      {R"({"num_hidden_layers": 1e40})", "num_hidden_layers is 1e+40"},
      {R"({"num_key_value_heads": 3})", "num_key_value_heads is 3, which does not divide num_attention_heads 4"},
      {R"({"head_dim": 7})", "head_dim is 7; rotary positions need an even one"},
      {R"({"attention_bias": true})", "attention_bias is true"},
      {R"({"hidden_act": "gelu"})", "hidden_act must be silu"},
      {R"({"rope_scaling": {"rope_type": "yarn"}})", "rope_type is 'yarn'; known are default and llama3"},
      {R"({"rope_scaling": 8})", "rope_scaling must be an object"},
      {R"({"rms_norm_eps": 0})", "rms_norm_eps is 0; a number above 0"},
      {R"({"tie_word_embeddings": 1})", "tie_word_embeddings is 1; true or false"},
  }));
  json document = small();
  document.update(json::parse(patch));
  CHECK_THROWS_WITH(parse(document), Catch::Contains(message));
  CHECK_THROWS_WITH(parse_config("{", "config.json"), Catch::Contains("config.json: not JSON"));
  CHECK_THROWS_WITH(parse_config("[]", "config.json"), Catch::Contains("a JSON object is needed"));
}

}  // namespace trainyard::models
