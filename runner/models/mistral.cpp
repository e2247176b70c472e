// Mistral 7B (Jiang et al. 2023), under the names of Hugging Face's MistralForCausalLM: Llama's block, in which a query
// may see only the last `sliding_window` keys.
#include "models/decoder.h"
#include "models/decoder_config.h"

namespace trainyard::models {

namespace {

ModelConfig read_mistral(const Fields& fields) {
  refuse_biases(fields);
  for (const char* const key : {"use_sliding_window", "max_window_layers"})
    fields.require(key, nullptr, "a mistral model has its window in every layer where sliding_window is a number");
  ModelConfig config = read_decoder(fields, {.max_positions = 131072, .kv_heads = 8, .null_kv_heads = false});
  // transformers' default is the window of the first release; later ones say null.
  config.sliding_window = fields.is_null("sliding_window") ? 0 : fields.size("sliding_window", 4096);
  return config;
}

nlohmann::json write_mistral(const ModelConfig& config) {
  nlohmann::json document = write_decoder(config);
  if (config.sliding_window > 0)
    document["sliding_window"] = config.sliding_window;
  else
    document["sliding_window"] = nullptr;
  return document;
}

ModelConfig mistral_7b(int64_t vocab, double rope_theta, int64_t window) {
  return with_size({.family = "mistral",
                    .vocab_size = vocab,
                    .max_positions = 32768,
                    .rms_norm_eps = 1e-5,
                    .rope_theta = rope_theta,
                    .sliding_window = window},
                   {4096, 14336, 32, 32, 8, 128, false});
}

}  // namespace

const Family& mistral() {
  static const Family family{
      .name = "mistral",
      .architecture = "MistralForCausalLM",
      .block_class = "MistralDecoderLayer",
      .presets = {{"mistral-7b-v0.1", mistral_7b(32000, 1e4, 4096)}, {"mistral-7b-v0.3", mistral_7b(32768, 1e6, 0)}},
      .read = read_mistral,
      .write = write_mistral,
      .build = build_decoder<RotaryAttention>,
      .placements = decoder_placements(),
      .stored = decoder_names()};
  return family;
}

}  // namespace trainyard::models
