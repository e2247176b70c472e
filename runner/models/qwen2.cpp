// Qwen2 and 2.5 (Yang et al. 2024), under the names of Hugging Face's Qwen2ForCausalLM: Llama's block with biases on q,
// k and v; the upper layers may have a sliding window.
#include "models/decoder.h"
#include "models/decoder_config.h"

namespace trainyard::models {

namespace {

struct Qwen2Attention : RotaryAttention {
  Qwen2Attention(const std::string& name, const ModelConfig& c, int layer)
      : RotaryAttention(name, c, layer, nn::Bias::Yes) {}
};

ModelConfig read_qwen2(const Fields& fields) {
  fields.require("attention_bias", true, "a qwen2 model always has biases on q, k and v");
  fields.require("mlp_bias", false, "a qwen2 model has no biases there");
  ModelConfig config = read_decoder(fields, {.max_positions = 32768, .kv_heads = 32, .null_head_dim = false});
  read_window_of_upper_layers(fields, config);
  return config;
}

nlohmann::json write_qwen2(const ModelConfig& config) {
  nlohmann::json document = write_decoder(config);
  write_window_of_upper_layers(config, document);
  return document;
}

ModelConfig qwen2_5_of(const DecoderSize& size, int64_t vocab, int64_t positions) {
  return with_size(
      {.family = "qwen2", .vocab_size = vocab, .max_positions = positions, .rms_norm_eps = 1e-6, .rope_theta = 1e6},
      size);
}

}  // namespace

const Family& qwen2() {
  static const Family family{
      .name = "qwen2",
      .architecture = "Qwen2ForCausalLM",
      .block_class = "Qwen2DecoderLayer",
      .presets = {{"qwen2.5-0.5b", qwen2_5_of({896, 4864, 24, 14, 2, 64, true}, 151936, 32768)},
                  {"qwen2.5-1.5b", qwen2_5_of({1536, 8960, 28, 12, 2, 128, true}, 151936, 131072)},
                  {"qwen2.5-7b", qwen2_5_of({3584, 18944, 28, 28, 4, 128, false}, 152064, 131072)}},
      .read = read_qwen2,
      .write = write_qwen2,
      .build = build_decoder<Qwen2Attention>,
      .placements = decoder_placements(),
      .stored = decoder_names()};
  return family;
}

}  // namespace trainyard::models
