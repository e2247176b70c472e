#include "models/config.h"

#include <catch2/catch.hpp>

#include <functional>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "models/language_model.h"
#include "models/meta_params.h"
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

}  // namespace

TEST_CASE("meta_params: Meta's formula gives the intermediate size, and what params.json cannot say is named",
          "[models]") {
  struct Size {
    int64_t hidden, intermediate;
  };
  for (const auto& [hidden, intermediate] : {Size{4096, 14336}, Size{4096, 11008}, Size{2048, 8192}, Size{64, 96},
                                             Size{16, 43}, Size{16, 42}, Size{16384, 53248}, Size{3072, 8191}}) {
    CAPTURE(hidden, intermediate);
    json given = small();
    given.update({{"hidden_size", hidden}, {"intermediate_size", intermediate}});
    const json params = json::parse(meta_params(parse(given)));
    int64_t rows = 8 * hidden / 3;
    if (params.contains("ffn_dim_multiplier"))
      rows = static_cast<int64_t>(params["ffn_dim_multiplier"].get<double>() * static_cast<double>(rows));
    const int64_t multiple = params.at("multiple_of");
    CHECK((rows + multiple - 1) / multiple * multiple == intermediate);
    CHECK(params.at("n_kv_heads") == 4);
    CHECK(params.at("use_scaled_rope") == false);
  }
  const auto with = [](const json& changes) {
    json given = small();
    given.update(changes);
    return meta_params(parse(given));
  };
  const json llama_3 = {{"rope_type", "llama3"},
                        {"factor", 32.0},
                        {"low_freq_factor", 1.0},
                        {"high_freq_factor", 4.0},
                        {"original_max_position_embeddings", 8192}};
  CHECK(json::parse(with({{"rope_scaling", llama_3}})).at("use_scaled_rope") == true);
  json other = llama_3;
  other["factor"] = 8.0;
  CHECK_THROWS_WITH(with({{"rope_scaling", other}}),
                    Catch::Contains("cannot say rope_scaling with the factor 8 at hidden_size 64"));
  CHECK_THROWS_WITH(with({{"head_dim", 32}}), Catch::Contains("cannot say that head_dim is 32"));
  CHECK_THROWS_WITH(with({{"model_type", "qwen2"}, {"num_key_value_heads", 2}}),
                    Catch::Contains("cannot say that this is a qwen2 model"));
}

TEST_CASE("parse_config: published models have their published sizes", "[models]") {
  if (test::test_data().empty()) return test::skip("no reference data");
  const json counts = json::parse(read_file(test::test_data() / "parity/parameter-counts.json")).at("models");
  int seen = 0;
  for (const auto& [name, expected] : counts.items()) {
    const std::string type = expected.at("model_type");
    if (type == "qwen3_moe") continue;
    CAPTURE(name);
    const auto path = test::test_data() / "configs" / (name + "_config.json");
    const ModelConfig config = parse_config(read_file(path), path);
    CHECK(parameter_count(config) == expected.at("parameters").get<int64_t>());
    CHECK(parameter_count(parse_config(to_hugging_face(config), "again")) == parameter_count(config));
    ++seen;
  }
  CHECK(seen == 10);
}

TEST_CASE("preset: every size of the table, in any spelling", "[models]") {
  const auto [name, parameters] = GENERATE(table<const char*, int64_t>({{"qwen3-0.6b", 596049920},
                                                                        {"Qwen3-1.7B", 1720574976},
                                                                        {"qwen3-4b", 4022468096},
                                                                        {"qwen3-8b", 8190735360},
                                                                        {"qwen3-14b", 14768307200},
                                                                        {"qwen3-32b", 32762123264},
                                                                        {"Llama-3.2-1B", 1235814400},
                                                                        {"llama3.2-3b", 3212749824},
                                                                        {"llama3-8b", 8030261248},
                                                                        {"Llama-3.1-8B", 8030261248},
                                                                        {"llama3.1-70b", 70553706496},
                                                                        {"llama3.1-405b", 405853388800},
                                                                        {"llama2-7b", 6738415616},
                                                                        {"llama2-13b", 13015864320},
                                                                        {"llama2-70b", 68976648192},
                                                                        {"qwen2.5-0.5b", 494032768},
                                                                        {"Qwen2.5-1.5B", 1543714304},
                                                                        {"qwen2.5-7b", 7615616512},
                                                                        {"Mistral-7B-v0.1", 7241732096},
                                                                        {"mistral-7b-v0.3", 7248023552},
                                                                        {"qwen3-tiny", 853376},
                                                                        {"qwen3-30m", 29369856},
                                                                        {"t5-small", 60506624},
                                                                        {"t5-base", 222903552},
                                                                        {"t5-large", 737668096},
                                                                        {"t5-3b", 2851598336},
                                                                        {"t5-v1.1-small", 76961152},
                                                                        {"t5-v1.1-base", 247577856},
                                                                        {"t5-v1.1-large", 783150080},
                                                                        {"T5-v1.1-XL", 2849757184},
                                                                        {"t5-v1.1-xxl", 11135332352},
                                                                        {"t5-11b", 11307321344},
                                                                        {"llama3-debug", 6163712},
                                                                        {"qwen3-debug", 31987968},
                                                                        {"tutorial", 65984},
                                                                        {"mnist", 1199882}}));
  CAPTURE(name);
  const ModelConfig config = preset(name);
  CHECK(parameter_count(config) == parameters);
  CHECK(to_hugging_face(parse_config(to_hugging_face(config), "again")) == to_hugging_face(config));
}

TEST_CASE("preset: an unknown name is told the nearest and the list", "[models]") {
  CHECK_THROWS_WITH(preset("qwen3-0.6c"),
                    Catch::Contains("did you mean 'qwen3-0.6b'") && Catch::Contains("llama2-13b"));
}

TEST_CASE("to_hugging_face: each family under its class, with the fields that it alone has", "[models]") {
  const auto [name, expected] = GENERATE(table<const char*, const char*>({
      {"llama2-7b", R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "attention_bias": false})"},
      {"mistral-7b-v0.1", R"({"model_type": "mistral", "architectures": ["MistralForCausalLM"],
                              "sliding_window": 4096})"},
      {"mistral-7b-v0.3", R"({"sliding_window": null})"},
      {"qwen2.5-0.5b", R"({"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "use_sliding_window": false,
                           "sliding_window": null, "max_window_layers": 24})"},
      {"qwen3-0.6b", R"({"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "use_sliding_window": false,
                         "attention_bias": false})"},
      {"t5-small", R"({"model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "feed_forward_proj": "relu",
                       "num_decoder_layers": 6, "tie_word_embeddings": true})"},
      {"tutorial", R"({"model_type": "tutorial", "architectures": ["Transformer"], "dim": 16, "n_layers": 10,
                       "n_heads": 4, "max_seq_len": 64, "dropout_p": 0.0})"},
      {"mnist", R"({"model_type": "mnist", "architectures": ["Net"], "image_size": 28, "num_labels": 10,
                    "dropout1": 0.25, "dropout2": 0.5})"},
      {"t5-v1.1-base", R"({"feed_forward_proj": "gated-gelu", "tie_word_embeddings": false})"},
  }));
  const json written = json::parse(to_hugging_face(preset(name))), wanted = json::parse(expected);
  for (const auto& [key, value] : wanted.items()) {
    CAPTURE(name, key);
    REQUIRE(written.contains(key));
    CHECK(written.at(key) == value);
  }
  CHECK(written.contains("attention_bias") ==
        (std::string(name).starts_with("llama") || std::string(name) == "qwen3-0.6b"));
}

TEST_CASE("to_hugging_face: a given config.json stays as it came, but for what is no longer true", "[models]") {
  const json of_nobody{{"eos_token_id", {1, 2}}, {"bos_token_id", nullptr}, {"of_nobody", {{"a", 1.5}}}};
  struct Case {
    json given;  ///< beside small() and what is nobody's
    std::function<void(ModelConfig&)> change;
    json changes;  ///< of the text
  };
  const auto nothing = [](ModelConfig&) {};
  const auto with = [](auto ModelConfig::*member, auto value) {
    return [=](ModelConfig& config) { config.*member = value; };
  };
  const json llama3{{"rope_type", "llama3"}, {"factor", 8.0}, {"low_freq_factor", 1.0}, {"high_freq_factor", 4.0}};
  json with_theta = llama3;
  with_theta["rope_theta"] = 5e5;
  const Case cases[] = {
      {json::object(), nothing, {}},
      {{{"rope_parameters", with_theta}, {"dtype", "bfloat16"}}, nothing, {}},
      {{{"num_key_value_heads", nullptr}}, nothing, {}},
      {{{"architectures", {"LlamaModel"}}}, nothing, {{"architectures", {"LlamaForCausalLM"}}}},
      {{{"tie_word_embeddings", true}}, with(&ModelConfig::tied_head, false), {{"tie_word_embeddings", false}}},
      {{{"layer_types", {"full_attention", "full_attention"}}, {"num_hidden_layers", 2}},
       with(&ModelConfig::layers, int64_t{1}),
       {{"layer_types", {"full_attention"}}, {"num_hidden_layers", 1}}},
      {{{"rope_parameters", with_theta}}, with(&ModelConfig::rope_theta, 1e4), {{"rope_theta", 1e4}}},
      {{{"model_type", "mistral"}, {"num_key_value_heads", 4}}, with(&ModelConfig::vocab_size, int64_t{99}),
       {{"vocab_size", 99}}},
  };
  for (const Case& row : cases) {
    json given = small();
    given.update(of_nobody);
    given.update(row.given);
    CAPTURE(given.dump());
    ModelConfig config = parse(given);
    row.change(config);
    const json written = json::parse(to_hugging_face(config, given.dump()));
    json expected = row.changes;
    expected.update(of_nobody);
    for (const auto& [key, value] : expected.items()) CHECK(written.at(key) == value);
    CHECK(to_hugging_face(parse(written)) == to_hugging_face(config));
    if (row.changes.empty()) {
      given["architectures"] = written.at("architectures");
      CHECK(written == given);
    }
  }
  std::string with_large_number = small().dump();
  with_large_number.insert(1, R"("of_nobody": [36893488147419103232],)");
  CHECK_THAT(to_hugging_face(parse(small()), with_large_number), Catch::Contains("36893488147419103232\n"));
  const ModelConfig other = preset("qwen3-tiny");
  CHECK(to_hugging_face(other, small().dump()) == to_hugging_face(other));
  CHECK(to_hugging_face(other, "") == to_hugging_face(other));
}

TEST_CASE("parse_config: windows are read as each family spells them", "[models]") {
  const auto windows = [](const json& patch) {
    json document = small();
    document["num_hidden_layers"] = 3;
    document["num_key_value_heads"] = 4;
    document.update(patch);
    std::vector<int64_t> seen;
    for (int64_t layer = 0; layer < 3; ++layer) seen.push_back(window_of(parse(document), layer));
    return seen;
  };
  using Windows = std::vector<int64_t>;
  CHECK(windows(json::object()) == Windows{0, 0, 0});
  CHECK(windows({{"model_type", "mistral"}}) == Windows(3, 4096));  // transformers' default
  CHECK(windows({{"model_type", "mistral"}, {"sliding_window", nullptr}}) == Windows(3, 0));
  CHECK(windows({{"model_type", "mistral"}, {"sliding_window", 9}}) == Windows(3, 9));
  for (const char* const type : {"qwen2", "qwen3"}) {
    CHECK(windows({{"model_type", type}, {"sliding_window", 9}}) == Windows(3, 0));
    const json used{{"model_type", type}, {"sliding_window", 9}, {"use_sliding_window", true}};
    CHECK(windows(used) == Windows(3, 0));  // max_window_layers is 28 by default
    json upper = used;
    upper["max_window_layers"] = 1;
    CHECK(windows(upper) == Windows{0, 9, 9});
    upper["layer_types"] = {"full_attention", "sliding_attention", "sliding_attention"};
    CHECK(windows(upper) == Windows{0, 9, 9});
    upper["max_window_layers"] = 2;
    CHECK_THROWS_WITH(windows(upper), Catch::Contains("layer_types is [") && Catch::Contains("by the other fields"));
  }
}

TEST_CASE("flops_per_row: of the first models, their products by hand", "[models]") {
  // Ten blocks of 4 · 16² + 2 · 16 · 64 weights, a head of 1024 · 16, and 64 · 64 pairs of tokens of width 16 in each.
  CHECK(flops_per_row(preset("tutorial"), {.tokens = 64}) ==
        64 * 6.0 * (10 * (4 * 256 + 2048) + 16384) + 12.0 * 10 * 16 * 64 * 64);
  CHECK(flops_per_row(preset("mnist"), {.tokens = 1}) ==
        6.0 * (26 * 26 * 9 * 32 + 24 * 24 * 9 * 32 * 64 + 9216 * 128 + 128 * 10));
}

TEST_CASE("parse_config: the first models' sizes must fit together", "[models]") {
  const json tutorial{{"model_type", "tutorial"}, {"vocab_size", 8}, {"n_layers", 2}, {"max_seq_len", 16}};
  CHECK(parse(tutorial).hidden_size == 16);
  CHECK(parse(tutorial).dropout == 0.1);
  const auto with = [](json document, const char* key, const json& value) {
    document[key] = value;
    return document;
  };
  CHECK_THROWS_WITH(parse(with(tutorial, "dim", 18)),
                    "config.json: dim is 18; it must be a multiple of n_heads, which is 4");
  CHECK_THROWS_WITH(parse(with(tutorial, "dropout_p", 1)),
                    "config.json: dropout_p is 1; a number from 0 to below 1 is needed");
  const json mnist{{"model_type", "mnist"}};
  CHECK(parse(mnist).cnn.hidden_dropout == 0.5);
  CHECK(parse(with(mnist, "num_labels", 47)).cnn.classes == 47);
  CHECK_THROWS_WITH(parse(with(mnist, "image_size", 5)), "config.json: image_size is 5; from 6 to 1024 is possible");
}

TEST_CASE("flops_per_row: a window bounds the attention of its layers", "[models]") {
  json document = small();
  document["model_type"] = "mistral";
  document["num_key_value_heads"] = 4;
  document["sliding_window"] = nullptr;
  const ModelConfig whole = parse(document);
  document["sliding_window"] = 32;
  const ModelConfig windowed = parse(document);
  CHECK(flops_per_row(windowed, {.tokens = 20}) == flops_per_row(whole, {.tokens = 20}));
  CHECK(flops_per_row(windowed, {.tokens = 64}) == 2 * flops_per_row(whole, {.tokens = 32}));  // twice the tokens
}

TEST_CASE("parse_config: t5 takes its decoder's depth, its tied head and its tokens from their defaults", "[models]") {
  const json t5{{"model_type", "t5"}, {"vocab_size", 100}, {"d_model", 8},  {"d_kv", 4},
                {"d_ff", 12},         {"num_layers", 3},   {"num_heads", 2}};
  const ModelConfig config = parse(t5);
  CHECK(config.t5.decoder_layers == 3);
  CHECK(config.tied_head);
  CHECK_FALSE(config.t5.is_gated);
  CHECK(config.dropout == 0.1);
  CHECK(config.max_positions == 512);
  const auto refusal = [&](const json& patch) {
    json document = t5;
    document.update(patch);
    return document;
  };
  CHECK_THROWS_WITH(parse(refusal({{"feed_forward_proj", "gated-silu"}})),
                    Catch::Contains("feed_forward_proj is 'gated-silu'; known are relu (v1.0) and gated-gelu (v1.1)"));
  CHECK_THROWS_WITH(parse(refusal({{"dropout_rate", 1}})),
                    Catch::Contains("dropout_rate is 1; a number from 0 to below"));
  CHECK_THROWS_WITH(parse(refusal({{"relative_attention_num_buckets", 6}})), Catch::Contains("a multiple of 4"));
  CHECK_THROWS_WITH(parse(refusal({{"decoder_start_token_id", 100}})), Catch::Contains("must be in the vocabulary"));
}

TEST_CASE("parse_config: says which field of which file is wrong", "[models]") {
  const auto [patch, message] = GENERATE(table<const char*, const char*>({
      {R"({"model_type": "gpt2"})", "config.json: model_type is 'gpt2'; known are llama, mistral, qwen2, qwen3, t5"},
      {R"({"hidden_size": null})", "config.json: hidden_size is missing"},
      {R"({"hidden_size": "64"})", "hidden_size is \"64\"; a whole number"},
      {R"({"vocab_size": -1})", "vocab_size is -1; a whole number from 1"},
      {R"({"num_hidden_layers": 1e40})", "num_hidden_layers is 1e+40"},
      {R"({"num_key_value_heads": 3})", "num_key_value_heads is 3, which does not divide num_attention_heads 4"},
      {R"({"head_dim": 7})", "head_dim is 7; rotary positions need an even one"},
      {R"({"attention_bias": true})", "attention_bias is true"},
      {R"({"sliding_window": 64})", "sliding_window is 64; a llama model sees the whole sequence"},
      {R"({"use_sliding_window": true})", "use_sliding_window is true; a llama model sees the whole sequence"},
      {R"({"model_type": "mistral"})",
       "num_key_value_heads is 8 where it is absent, which does not divide num_attention_heads 4"},
      {R"({"rope_parameters": {"full_attention": {"rope_theta": 1e4}}})",
       "rope_parameters has an object 'full_attention'; a model here rotates the same way in every layer"},
      {R"({"partial_rotary_factor": 0.5, "rope_scaling": {"rope_type": "llama3"}})",
       "partial_rotary_factor is 0.5; llama3 rotates the whole head here"},
      {R"({"rope_scaling": {"rope_type": "llama3", "factor": 8}})",
       "config.json: low_freq_factor is missing; a number above 0 is needed"},
      {R"({"head_dim": null, "hidden_size": 3})", "head_dim is 0; rotary positions need an even one"},
      {R"({"model_type": "qwen2", "attention_bias": false})", "always has biases on q, k and v"},
      {R"({"model_type": "qwen2", "mlp_bias": true})", "mlp_bias is true; a qwen2 model has no biases there"},
      {R"({"model_type": "qwen3", "attention_bias": true})",
       "attention_bias is true; a qwen3 model here has no biases"},
      {R"({"model_type": "qwen3", "num_key_value_heads": 4, "max_window_layers": -1})",
       "max_window_layers is -1; a whole number from 0"},
      {R"({"model_type": "mistral", "use_sliding_window": false})", "use_sliding_window is false; a mistral model has"},
      {R"({"model_type": "mistral", "num_key_value_heads": 4, "sliding_window": 0})",
       "sliding_window is 0; a whole number from 1"},
      {R"({"hidden_act": "gelu"})", R"(hidden_act is "gelu"; models here have silu)"},
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
