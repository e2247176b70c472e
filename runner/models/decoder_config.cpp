#include "models/decoder_config.h"

#include <fmt/format.h>

namespace trainyard::models {
namespace {

using nlohmann::json;

RopeScaling scaling_of(const Fields& rope) {
  const std::string type = rope.text("rope_type", rope.text("type", "default"));
  if (type == "default") return {};
  if (type != "llama3") rope.fail("rope_type", fmt::format("is '{}'; known are default and llama3", type));
  RopeScaling scaling;
  scaling.factor = rope.number("factor", 8);
  scaling.low_freq_factor = rope.number("low_freq_factor", 1);
  scaling.high_freq_factor = rope.number("high_freq_factor", 4);
  scaling.original_length = rope.number("original_max_position_embeddings", 8192);
  if (scaling.high_freq_factor <= scaling.low_freq_factor)
    rope.fail("high_freq_factor", "must be above low_freq_factor");
  return scaling;
}

void read_rope(const Fields& fields, ModelConfig& config) {
  config.rope_theta = fields.number("rope_theta", 10000);
  if (fields.has("rope_parameters")) {
    const Fields rope = fields.object("rope_parameters");
    config.rope_theta = rope.number("rope_theta", config.rope_theta);
    config.rope_scaling = scaling_of(rope);
  } else if (fields.has("rope_scaling")) {
    config.rope_scaling = scaling_of(fields.object("rope_scaling"));
  }
}

json written_scaling(const RopeScaling& scaling) {
  if (scaling.factor == 1) return nullptr;
  return {{"rope_type", "llama3"},
          {"factor", scaling.factor},
          {"low_freq_factor", scaling.low_freq_factor},
          {"high_freq_factor", scaling.high_freq_factor},
          {"original_max_position_embeddings", static_cast<int64_t>(scaling.original_length)}};
}

void check_heads(const Fields& fields, const ModelConfig& config) {
  if (config.heads % config.kv_heads != 0)
    fields.fail("num_key_value_heads",
                fmt::format("is {}, which does not divide num_attention_heads {}", config.kv_heads, config.heads));
  if (config.head_dim % 2 != 0)
    fields.fail("head_dim", fmt::format("is {}; rotary positions need an even one", config.head_dim));
}

}  // namespace

ModelConfig read_decoder(const Fields& fields, int64_t default_head_dim) {
  fields.require("hidden_act", "silu", "models here have silu");
  ModelConfig config;
  config.vocab_size = fields.size("vocab_size");
  config.hidden_size = fields.size("hidden_size");
  config.intermediate_size = fields.size("intermediate_size");
  config.layers = fields.layers("num_hidden_layers");
  config.heads = fields.size("num_attention_heads");
  config.kv_heads = fields.size("num_key_value_heads", config.heads);
  config.head_dim =
      fields.size("head_dim", default_head_dim > 0 ? default_head_dim : config.hidden_size / config.heads);
  config.max_positions = fields.size("max_position_embeddings", 2048);
  config.rms_norm_eps = fields.number("rms_norm_eps", 1e-6);
  config.initializer_range = fields.number("initializer_range", 0.02);
  config.tied_head = fields.flag("tie_word_embeddings", false);
  read_rope(fields, config);
  check_heads(fields, config);
  return config;
}

void refuse_biases(const Fields& fields) {
  for (const char* const key : {"attention_bias", "mlp_bias"})
    fields.require(key, false, fmt::format("a {} model here has no biases", fields.text("model_type", "")));
}

void refuse_window(const Fields& fields) {
  const std::string why = fmt::format("a {} model sees the whole sequence", fields.text("model_type", ""));
  fields.require("use_sliding_window", false, why);
  fields.require("sliding_window", nullptr, why);
}

void read_window_of_upper_layers(const Fields& fields, ModelConfig& config) {
  const int64_t window = fields.size("sliding_window", 0), first = fields.count("max_window_layers", 28);
  if (!fields.flag("use_sliding_window", false) || window == 0 || first >= config.layers) return;
  config.sliding_window = window;
  config.first_windowed_layer = first;
}

void write_window_of_upper_layers(const ModelConfig& config, json& document) {
  const bool windowed = config.sliding_window > 0;
  document["use_sliding_window"] = windowed;
  document["sliding_window"] = windowed ? json(config.sliding_window) : json();
  document["max_window_layers"] = windowed ? config.first_windowed_layer : config.layers;
}

nn::Placements decoder_placements() {
  using enum nn::Placement;
  return {{"model.embed_tokens", Vocabulary},
          {"lm_head", Vocabulary},
          {"*.self_attn", Region},
          {"*.self_attn.q_proj", Column, nn::Unit::QueryHead},
          {"*.self_attn.[kv]_proj", Column, nn::Unit::KeyValueHead},
          {"*.self_attn.o_proj", Row, nn::Unit::QueryHead},
          {"*.mlp", Region},
          {"*.mlp.gate_proj", Column},
          {"*.mlp.up_proj", Column},
          {"*.mlp.down_proj", Row}};
}

StoredNames decoder_names() {
  return {.embedding = "model.embed_tokens.weight", .head = "lm_head.weight"};
}

json write_decoder(const ModelConfig& config) {
  return {
      {"vocab_size", config.vocab_size},
      {"hidden_size", config.hidden_size},
      {"intermediate_size", config.intermediate_size},
      {"num_hidden_layers", config.layers},
      {"num_attention_heads", config.heads},
      {"num_key_value_heads", config.kv_heads},
      {"head_dim", config.head_dim},
      {"hidden_act", "silu"},
      {"max_position_embeddings", config.max_positions},
      {"rms_norm_eps", config.rms_norm_eps},
      {"rope_theta", config.rope_theta},
      {"rope_scaling", written_scaling(config.rope_scaling)},
      {"attention_dropout", 0.0},
      {"initializer_range", config.initializer_range},
      {"tie_word_embeddings", config.tied_head},
      {"torch_dtype", "float32"},
  };
}

ModelConfig with_size(ModelConfig config, const DecoderSize& size) {
  config.hidden_size = size.hidden, config.intermediate_size = size.ff, config.layers = size.layers;
  config.heads = size.heads, config.kv_heads = size.kv_heads, config.head_dim = size.head_dim;
  config.tied_head = size.tied;
  return config;
}

}  // namespace trainyard::models
