#include "models/t5_config.h"

#include <fmt/format.h>

namespace trainyard::models {
namespace {

struct Size {
  int64_t hidden, ff, layers, heads, head_dim;
};

ModelConfig version_1_0(const Size& size) {
  ModelConfig c;
  c.family = "t5";
  c.vocab_size = 32128;
  c.hidden_size = size.hidden, c.intermediate_size = size.ff, c.layers = c.t5.decoder_layers = size.layers;
  c.heads = c.kv_heads = size.heads, c.head_dim = size.head_dim;
  c.max_positions = 512;
  c.rms_norm_eps = 1e-6, c.initializer_range = 1, c.tied_head = true, c.dropout = 0.1;
  return c;
}

ModelConfig version_1_1(const Size& size) {
  ModelConfig c = version_1_0(size);
  c.t5.is_gated = true, c.t5.scales_output = c.tied_head = false;
  return c;
}

bool is_gated(const Fields& fields) {
  const std::string projection = fields.text("feed_forward_proj", "relu");
  if (projection == "relu") return false;
  if (projection == "gated-gelu") return true;
  fields.fail("feed_forward_proj", fmt::format("is '{}'; known are relu (v1.0) and gated-gelu (v1.1)", projection));
}

int32_t token_of(const Fields& fields, const char* key, int64_t otherwise) {
  return static_cast<int32_t>(fields.is_null(key) ? otherwise : fields.count(key, otherwise));
}

}  // namespace

ModelConfig read_t5(const Fields& fields) {
  ModelConfig c;
  c.vocab_size = fields.size("vocab_size");
  c.hidden_size = fields.size("d_model");
  c.intermediate_size = fields.size("d_ff");
  c.layers = fields.layers("num_layers");
  c.heads = c.kv_heads = fields.size("num_heads");
  c.head_dim = fields.size("d_kv");
  c.max_positions = fields.is_null("n_positions") ? 512 : fields.size("n_positions", 512);
  c.rms_norm_eps = fields.number("layer_norm_epsilon", 1e-6);
  c.initializer_range = fields.number("initializer_factor", 1);
  c.tied_head = fields.flag("tie_word_embeddings", true);
  // transformers 5 writes it, none before did; a null is false to it.
  c.t5.scales_output = !fields.is_null("scale_decoder_outputs") && fields.flag("scale_decoder_outputs", c.tied_head);
  c.t5.decoder_layers = fields.has("num_decoder_layers") ? fields.size("num_decoder_layers") : c.layers;
  c.t5.buckets = fields.size("relative_attention_num_buckets", 32);
  c.t5.max_distance = fields.size("relative_attention_max_distance", 128);
  c.t5.is_gated = is_gated(fields);
  c.dropout = fields.rate("dropout_rate", 0.1);
  c.t5.pad_token = token_of(fields, "pad_token_id", 0);
  c.t5.start_token = token_of(fields, "decoder_start_token_id", c.t5.pad_token);
  if (c.t5.buckets % 4 != 0 || c.t5.max_distance <= c.t5.buckets / 2)
    fields.fail("relative_attention_num_buckets",
                fmt::format("is {} for distances to {}; a multiple of 4, half of it below that distance, is needed",
                            c.t5.buckets, c.t5.max_distance));
  if (std::max(c.t5.pad_token, c.t5.start_token) >= c.vocab_size)
    fields.fail("decoder_start_token_id", "and pad_token_id must be in the vocabulary");
  return c;
}

nlohmann::json write_t5(const ModelConfig& c) {
  return {{"vocab_size", c.vocab_size},
          {"d_model", c.hidden_size},
          {"d_kv", c.head_dim},
          {"d_ff", c.intermediate_size},
          {"num_layers", c.layers},
          {"num_decoder_layers", c.t5.decoder_layers},
          {"num_heads", c.heads},
          {"n_positions", c.max_positions},
          {"relative_attention_num_buckets", c.t5.buckets},
          {"relative_attention_max_distance", c.t5.max_distance},
          {"dropout_rate", c.dropout},
          {"layer_norm_epsilon", c.rms_norm_eps},
          {"initializer_factor", c.initializer_range},
          {"feed_forward_proj", c.t5.is_gated ? "gated-gelu" : "relu"},
          {"is_encoder_decoder", true},
          {"pad_token_id", c.t5.pad_token},
          {"eos_token_id", 1},
          {"decoder_start_token_id", c.t5.start_token},
          {"tie_word_embeddings", c.tied_head},
          {"scale_decoder_outputs", c.t5.scales_output},
          {"torch_dtype", "float32"}};
}

std::vector<Preset> t5_presets() {
  return {
      {"t5-small", version_1_0({512, 2048, 6, 8, 64})},       {"t5-base", version_1_0({768, 3072, 12, 12, 64})},
      {"t5-large", version_1_0({1024, 4096, 24, 16, 64})},    {"t5-3b", version_1_0({1024, 16384, 24, 32, 128})},
      {"t5-11b", version_1_0({1024, 65536, 24, 128, 128})},   {"t5-v1.1-small", version_1_1({512, 1024, 8, 6, 64})},
      {"t5-v1.1-base", version_1_1({768, 2048, 12, 12, 64})}, {"t5-v1.1-large", version_1_1({1024, 2816, 24, 16, 64})},
      {"t5-v1.1-xl", version_1_1({2048, 5120, 24, 32, 64})},  {"t5-v1.1-xxl", version_1_1({4096, 10240, 24, 64, 64})}};
}

double t5_flops_per_row(const ModelConfig& c, const RowLengths& lengths) {
  const auto source = static_cast<double>(lengths.source), target = static_cast<double>(lengths.tokens);
  const auto width = static_cast<double>(c.heads * c.head_dim), hidden = static_cast<double>(c.hidden_size);
  const auto encoder = static_cast<double>(c.layers), decoder = static_cast<double>(c.t5.decoder_layers);
  const double attention = 4 * hidden * width;
  const double feed_forward = (c.t5.is_gated ? 3.0 : 2.0) * hidden * static_cast<double>(c.intermediate_size);
  const double products =
      source * (encoder * (attention + feed_forward) + decoder * attention / 2) +
      target * (decoder * (1.5 * attention + feed_forward) + hidden * static_cast<double>(c.vocab_size));
  const double pairs = encoder * source * source + decoder * target * (target + source);
  return 6 * products + 12 * width * pairs;
}

}  // namespace trainyard::models
