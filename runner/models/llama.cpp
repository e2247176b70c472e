// Llama 2 and 3 (Touvron et al. 2023, Dubey et al. 2024), under the names of Hugging Face's LlamaForCausalLM.
#include "models/decoder.h"
#include "models/decoder_config.h"

namespace trainyard::models {

namespace {

ModelConfig read_llama(const Fields& fields) {
  refuse_biases(fields);
  refuse_window(fields);
  return read_decoder(fields, {.max_positions = 2048});
}

nlohmann::json write_llama(const ModelConfig& config) {
  nlohmann::json document = write_decoder(config);
  document["attention_bias"] = false;
  return document;
}

ModelConfig llama2_of(const DecoderSize& size) {
  return with_size(
      {.family = "llama", .vocab_size = 32000, .max_positions = 4096, .rms_norm_eps = 1e-5, .rope_theta = 1e4}, size);
}

ModelConfig llama3_of(const DecoderSize& size, double rope_factor, int64_t vocab = 128256) {
  return with_size({.family = "llama",
                    .vocab_size = vocab,
                    .max_positions = rope_factor == 1 ? 8192 : 131072,
                    .rms_norm_eps = 1e-5,
                    .rope_theta = 5e5,
                    .rope_scaling = {.factor = rope_factor}},
                   size);
}

}  // namespace

const Family& llama() {
  static const Family family{.name = "llama",
                             .architecture = "LlamaForCausalLM",
                             .block_class = "LlamaDecoderLayer",
                             .presets = {{"llama2-7b", llama2_of({4096, 11008, 32, 32, 32, 128, false})},
                                         {"llama2-13b", llama2_of({5120, 13824, 40, 40, 40, 128, false})},
                                         {"llama2-70b", llama2_of({8192, 28672, 80, 64, 8, 128, false})},
                                         {"llama3-8b", llama3_of({4096, 14336, 32, 32, 8, 128, false}, 1)},
                                         {"llama3.1-8b", llama3_of({4096, 14336, 32, 32, 8, 128, false}, 8)},
                                         {"llama3.1-70b", llama3_of({8192, 28672, 80, 64, 8, 128, false}, 8)},
                                         {"llama3.1-405b", llama3_of({16384, 53248, 126, 128, 8, 128, false}, 8)},
                                         {"llama3.2-1b", llama3_of({2048, 8192, 16, 32, 8, 64, true}, 32)},
                                         {"llama3.2-3b", llama3_of({3072, 8192, 28, 24, 8, 128, true}, 32)},
                                         // torchtitan's debugmodel, for its test tokenizer.
                                         {"llama3-debug", llama3_of({256, 768, 6, 16, 16, 16, false}, 8, 2048)}},
                             .read = read_llama,
                             .write = write_llama,
                             .build = build_decoder<RotaryAttention>,
                             .placements = decoder_placements(),
                             .stored = decoder_names()};
  return family;
}

}  // namespace trainyard::models
