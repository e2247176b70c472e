#include "models/decoder_config.h"

#include <fmt/format.h>

namespace trainyard::models {
namespace {

using nlohmann::json;

/// The object that says how positions are rotated. Of its two spellings transformers takes rope_scaling, unless that
/// is null or empty.
json rope_object(const Fields& fields) {
  for (const char* const key : {"rope_scaling", "rope_parameters"}) {
    json rope = fields.raw(key);
    if (rope.is_null()) continue;
    static_cast<void>(fields.object(key));  // anything else is refused
    for (const auto& [name, value] : rope.items())
      if (value.is_object())
        fields.fail(key, fmt::format("has an object '{}'; a model here rotates the same way in every layer", name));
    if (!rope.empty()) return rope;
  }
  return json::object();
}

/// A length beside the object counts before one in it, as in transformers; without both it is that of the model.
double original_length(const Fields& fields, const Fields& rope, const ModelConfig& config) {
  constexpr const char* kKey = "original_max_position_embeddings";
  if (fields.contains(kKey)) return fields.number(kKey);
  return rope.number(kKey, static_cast<double>(config.max_positions));
}

RopeScaling scaling_of(const Fields& fields, const Fields& rope, const ModelConfig& config) {
  const std::string type = rope.text("rope_type", rope.contains("rope_type") ? "" : rope.text("type", "default"));
  if (type == "default") return {};
  if (type != "llama3") rope.fail("rope_type", fmt::format("is '{}'; known are default and llama3", type));
  for (const Fields& place : {fields, rope})
    place.require("partial_rotary_factor", 1, "llama3 rotates the whole head here");
  RopeScaling scaling;
  scaling.factor = rope.number("factor");
  scaling.low_freq_factor = rope.number("low_freq_factor");
  scaling.high_freq_factor = rope.number("high_freq_factor");
  scaling.original_length = original_length(fields, rope, config);
  if (scaling.high_freq_factor <= scaling.low_freq_factor)
    rope.fail("high_freq_factor", "must be above low_freq_factor");
  return scaling;
}

/// A theta in the object counts before one beside it. Needs config.max_positions.
void read_rope(const Fields& fields, ModelConfig& config) {
  constexpr double kDefaultTheta = 10000;
  const json object = rope_object(fields);
  const Fields rope(object, fields.where());
  config.rope_theta =
      rope.contains("rope_theta") ? rope.number("rope_theta") : fields.number("rope_theta", kDefaultTheta);
  config.rope_scaling = scaling_of(fields, rope, config);
}

json written_scaling(const RopeScaling& scaling) {
  if (scaling.factor == 1) return nullptr;
  return {{"rope_type", "llama3"},
          {"factor", scaling.factor},
          {"low_freq_factor", scaling.low_freq_factor},
          {"high_freq_factor", scaling.high_freq_factor},
          {"original_max_position_embeddings", static_cast<int64_t>(scaling.original_length)}};
}

/// 0 is the default too, as in transformers.
double initializer_range_of(const Fields& fields) {
  constexpr const char* kKey = "initializer_range";
  constexpr double kDefault = 0.02;
  return fields.raw(kKey) == 0 ? kDefault : fields.number(kKey, kDefault);
}

struct DerivedSize {
  int64_t absent;   ///< what an absent field means; 0: `derived`
  int64_t derived;  ///< what null means, where it may be null
  bool may_be_null;
};

int64_t size_of(const Fields& fields, const char* key, const DerivedSize& size) {
  if (size.may_be_null && fields.is_null(key)) return size.derived;
  return fields.size(key, size.absent > 0 ? size.absent : size.derived);
}

void check_heads(const Fields& fields, const ModelConfig& config) {
  if (config.heads % config.kv_heads != 0)
    fields.fail("num_key_value_heads",
                fmt::format("is {}{}, which does not divide num_attention_heads {}", config.kv_heads,
                            fields.contains("num_key_value_heads") ? "" : " where it is absent", config.heads));
  if (config.head_dim % 2 != 0 || config.head_dim == 0)
    fields.fail("head_dim", fmt::format("is {}; rotary positions need an even one", config.head_dim));
}

}  // namespace

ModelConfig read_decoder(const Fields& fields, const FamilyDefaults& defaults) {
  if (fields.text("hidden_act", "silu") != "silu") fields.require("hidden_act", "silu", "models here have silu");
  ModelConfig config;
  config.vocab_size = fields.size("vocab_size");
  config.hidden_size = fields.size("hidden_size");
  config.intermediate_size = fields.size("intermediate_size");
  config.layers = fields.layers("num_hidden_layers");
  config.heads = fields.size("num_attention_heads");
  config.kv_heads =
      size_of(fields, "num_key_value_heads",
              {.absent = defaults.kv_heads, .derived = config.heads, .may_be_null = defaults.null_kv_heads});
  config.head_dim = size_of(fields, "head_dim",
                            {.absent = defaults.head_dim,
                             .derived = config.hidden_size / config.heads,
                             .may_be_null = defaults.null_head_dim});
  config.max_positions = fields.size("max_position_embeddings", defaults.max_positions);
  config.rms_norm_eps = fields.number("rms_norm_eps", 1e-6);
  config.initializer_range = initializer_range_of(fields);
  config.pad_token_id = fields.row("pad_token_id", config.vocab_size);
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
  constexpr int64_t kDefaultWindow = 4096, kDefaultFirst = 28;
  const int64_t window = fields.is_null("sliding_window") ? 0 : fields.size("sliding_window", kDefaultWindow);
  const int64_t first = fields.count("max_window_layers", kDefaultFirst);
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
  json document{
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
  if (config.pad_token_id) document["pad_token_id"] = *config.pad_token_id;
  return document;
}

ModelConfig with_size(ModelConfig config, const DecoderSize& size) {
  config.hidden_size = size.hidden, config.intermediate_size = size.ff, config.layers = size.layers;
  config.heads = size.heads, config.kv_heads = size.kv_heads, config.head_dim = size.head_dim;
  config.tied_head = size.tied;
  return config;
}

}  // namespace trainyard::models
