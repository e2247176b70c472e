// Fields of a config.json that act only in training: each is honoured, or refused by name where training would need it.
#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/config.h"
#include "models/model.h"

namespace trainyard::models {
namespace {

using nlohmann::json;

const std::vector<std::string> kDecoders{"llama", "mistral", "qwen2", "qwen3"};

json bare_config(const std::string& family) {
  if (family == "tutorial") return {{"model_type", family}, {"vocab_size", 8}, {"n_layers", 1}, {"max_seq_len", 8}};
  if (family == "mnist") return {{"model_type", family}};
  if (family == "t5")
    return {{"model_type", family}, {"vocab_size", 100}, {"d_model", 16},  {"d_kv", 4},
            {"d_ff", 36},           {"num_layers", 1},   {"num_heads", 2}, {"feed_forward_proj", "gated-gelu"}};
  return {{"model_type", family},   {"vocab_size", 100},        {"hidden_size", 64},        {"intermediate_size", 96},
          {"num_hidden_layers", 2}, {"num_attention_heads", 8}, {"num_key_value_heads", 8}, {"head_dim", 8}};
}

ModelConfig parsed_with(const std::string& family, const json& patch) {
  json document = bare_config(family);
  document.update(patch);
  return parse_config(document.dump(), "config.json");
}

/// A name that one of transformers' configurations has, with a value that acts, and the families that honour it.
struct Row {
  const char* field;
  json value;
  std::vector<std::string> honoured_by = {};
};

const std::vector<Row>& rows() {
  static const std::vector<Row> all{
      {"attention_dropout", 0.1},
      {"attention_probs_dropout_prob", 0.1},
      {"attn_pdrop", 0.1},
      {"activation_dropout", 0.1},
      {"hidden_dropout", 0.1},
      {"hidden_dropout_prob", 0.1},
      {"resid_pdrop", 0.1},
      {"embd_pdrop", 0.1},
      {"dropout", 0.1},
      {"dropout_rate", 0.1, {"t5"}},
      {"dropout_p", 0.1, {"tutorial"}},
      {"dropout1", 0.1, {"mnist"}},
      {"layerdrop", 0.1},
      {"encoder_layerdrop", 0.1},
      {"drop_path_rate", 0.1},
      {"router_aux_loss_coef", 0.001},
      {"router_z_loss_coef", 0.001},
      {"router_jitter_noise", 0.01},
      {"output_router_logits", true},
      {"attention_dropout", 1},
      {"attention_dropout", "0.1"},
      {"attention_dropout", -0.1},
  };
  return all;
}

double scale_of(const std::map<std::string, nn::Init>& inits, const std::string& name) {
  return static_cast<double>(inits.at(name).scale);
}

std::map<std::string, nn::Init> inits_of(const Model& model) {
  std::map<std::string, nn::Init> inits;
  for (const nn::Parameter* const parameter : model.parameters()) inits.emplace(parameter->name(), parameter->init());
  return inits;
}

}  // namespace

TEST_CASE("for_training: a field that acts only in training is honoured, or refused by name", "[models]") {
  for (const std::string family : {"llama", "mistral", "qwen2", "qwen3", "t5", "tutorial", "mnist"})
    for (const Row& row : rows()) {
      CAPTURE(family, row.field, row.value.dump());
      const ModelConfig config = parsed_with(family, {{row.field, row.value}});  // nothing else is in its way
      if (std::ranges::find(row.honoured_by, family) != row.honoured_by.end()) {
        CHECK(for_training(config).dropout == row.value.get<double>());
        continue;
      }
      const std::string says = std::string("config.json: ") + row.field + " is " + row.value.dump() + "; a " + family +
                               " model here has none, so it can be trained only with " +
                               (row.value.is_boolean() ? "false" : "0");
      CHECK_THROWS_WITH(for_training(config), says);
    }
}

TEST_CASE("for_training: a field that asks for nothing, or that acts elsewhere, is no hindrance", "[models]") {
  for (const char* const family : {"llama", "mistral", "qwen2", "qwen3", "t5"}) {
    for (const Row& row : rows())
      for (const json& nothing : {json(0), json(0.0), json(nullptr), json(false)}) {
        CAPTURE(family, row.field, nothing.dump());
        const bool is_read = std::ranges::find(row.honoured_by, family) != row.honoured_by.end();
        if (!is_read) CHECK_NOTHROW(for_training(parsed_with(family, {{row.field, nothing}})));
      }
    for (const json& elsewhere : {json{{"classifier_dropout", 0.1}}, json{{"summary_first_dropout", 0.1}},
                                  json{{"use_cache", false}}, json{{"use_cache", true}}, json{{"pretraining_tp", 2}}}) {
      CAPTURE(family, elsewhere.dump());
      CHECK_NOTHROW(for_training(parsed_with(family, elsewhere)));
    }
  }
}

TEST_CASE("pad_token_id: a row of a decoder's embedding, counted from the end where it is negative", "[models]") {
  const std::string family = GENERATE(from_range(kDecoders));
  const bool is_tied = GENERATE(false, true);
  CAPTURE(family, is_tied);
  using ZeroRow = std::optional<int64_t>;
  const auto zero_rows = [&](const json& id) {
    const ModelConfig config = parsed_with(family, {{"pad_token_id", id}, {"tie_word_embeddings", is_tied}});
    const ModelConfig again = parse_config(to_hugging_face(config), "again");
    CHECK(again.pad_token_id == config.pad_token_id);
    const auto inits = inits_of(*build(config));
    for (const auto& [name, init] : inits)
      if (name != "model.embed_tokens.weight") CHECK(init.zero_row == std::nullopt);
    return inits.at("model.embed_tokens.weight").zero_row;
  };
  CHECK(zero_rows(nullptr) == std::nullopt);
  CHECK(zero_rows(0) == ZeroRow(0));
  CHECK(zero_rows(99) == ZeroRow(99));
  CHECK(zero_rows(-1) == ZeroRow(99));
  CHECK(zero_rows(-100) == ZeroRow(0));
  for (const json& wrong : {json(100), json(-101), json(2.5), json("2"), json(true), json(json::array({2}))})
    CHECK_THROWS_WITH(zero_rows(wrong), "config.json: pad_token_id is " + wrong.dump() +
                                            "; a row from 0 to 99 is needed, or from -1 to -100, counted from the end");
}

TEST_CASE("pad_token_id: of a T5 it is no padding row", "[models]") {
  for (const auto& [name, init] : inits_of(*build(parsed_with("t5", {{"pad_token_id", 3}})))) {
    CAPTURE(name);
    CHECK(init.zero_row == std::nullopt);
  }
}

TEST_CASE("initializer_range: the deviation of a decoder's weights, where 0 is the default as in transformers", "[models]") {
  const std::string family = GENERATE(from_range(kDecoders));
  CAPTURE(family);
  CHECK(parsed_with(family, {{"initializer_range", 0.3}}).initializer_range == 0.3);
  CHECK(parsed_with(family, {{"initializer_range", 0}}).initializer_range == 0.02);
  CHECK(parsed_with(family, {{"initializer_range", 0.0}}).initializer_range == 0.02);
  CHECK_THROWS_WITH(parsed_with(family, {{"initializer_range", -0.1}}),
                    "config.json: initializer_range is -0.1; a number above 0 is needed");
  for (const auto& [name, init] : inits_of(*build(parsed_with(family, {{"initializer_range", 0.3}})))) {
    CAPTURE(name);
    if (init.kind == nn::Init::Kind::Normal) CHECK(init.scale == 0.3F);
  }
}

TEST_CASE("initializer_factor: what transformers' T5 begins with, norms too", "[models]") {
  const auto inits = inits_of(*build(parsed_with("t5", {{"initializer_factor", 0.5}, {"tie_word_embeddings", false}})));
  const std::string block = "decoder.block.0.layer.", attention = block + "0.SelfAttention.";
  const std::map<std::string, double> expected{{"shared.weight", 0.5},
                                               {"lm_head.weight", 0.5},
                                               {attention + "q.weight", 0.5 / 8},
                                               {attention + "k.weight", 0.5 / 4},
                                               {attention + "v.weight", 0.5 / 4},
                                               {attention + "o.weight", 0.5 / std::sqrt(8.0)},
                                               {attention + "relative_attention_bias.weight", 0.5 / 4},
                                               {block + "2.DenseReluDense.wi_0.weight", 0.5 / 4},
                                               {block + "2.DenseReluDense.wi_1.weight", 0.5 / 4},
                                               {block + "2.DenseReluDense.wo.weight", 0.5 / 6},
                                               {block + "0.layer_norm.weight", 0.5},
                                               {block + "1.layer_norm.weight", 0.5},
                                               {block + "2.layer_norm.weight", 0.5},
                                               {"encoder.final_layer_norm.weight", 0.5}};
  for (const auto& [name, scale] : expected) {
    CAPTURE(name);
    CHECK(scale_of(inits, name) == Approx(scale));
    CHECK((inits.at(name).kind == nn::Init::Kind::Constant) == name.ends_with("norm.weight"));
  }
}

}  // namespace trainyard::models
