// Qwen3 (Yang et al. 2025), under the names of Hugging Face's Qwen3ForCausalLM: each head of q and k is normed before
// it is rotated, and the width of attention need not be the hidden size.
#include "models/decoder.h"
#include "models/decoder_config.h"

namespace trainyard::models {

namespace {

using nn::Variable;

class Qwen3Attention : public nn::Module {
 public:
  Qwen3Attention(const std::string& name, const ModelConfig& c, int layer)
      : Module(name),
        q_proj_(name_of("q_proj"), c.hidden_size, c.heads * c.head_dim, init_of(c)),
        k_proj_(name_of("k_proj"), c.hidden_size, c.kv_heads * c.head_dim, init_of(c)),
        v_proj_(name_of("v_proj"), c.hidden_size, c.kv_heads * c.head_dim, init_of(c)),
        o_proj_(name_of("o_proj"), c.heads * c.head_dim, c.hidden_size, init_of(c)),
        q_norm_(name_of("q_norm"), c.head_dim, static_cast<float>(c.rms_norm_eps)),
        k_norm_(name_of("k_norm"), c.head_dim, static_cast<float>(c.rms_norm_eps)),
        heads_(heads_of(c, layer)),
        layer_(layer) {
    add_child(q_proj_), add_child(k_proj_), add_child(v_proj_), add_child(o_proj_), add_child(q_norm_),
        add_child(k_norm_);
  }

  Variable operator()(const Variable& input, const nn::DecoderContext& context) const {
    return run(input, [this, context](const Variable& given) {
      const Variable x = nn::tokens_of(given, context);
      const Variable q = q_norm_(q_proj_(x), context), k = k_norm_(k_proj_(x), context);
      return o_proj_(nn::causal_attention(q, k, v_proj_(x), nn::heads_here(heads_, q_proj_.weight()), layer_, context));
    });
  }

 private:
  nn::Linear q_proj_, k_proj_, v_proj_, o_proj_;
  nn::RotaryNorm q_norm_, k_norm_;
  nn::Heads heads_;
  int layer_;
};

ModelConfig read_qwen3(const Fields& fields) {
  refuse_biases(fields);
  ModelConfig config =
      read_decoder(fields, {.max_positions = 32768, .kv_heads = 32, .head_dim = 128, .null_head_dim = false});
  read_window_of_upper_layers(fields, config);
  return config;
}

nlohmann::json write_qwen3(const ModelConfig& config) {
  nlohmann::json document = write_decoder(config);
  document["attention_bias"] = false;
  write_window_of_upper_layers(config, document);
  return document;
}

ModelConfig qwen3_of(const DecoderSize& size, int64_t vocab = 151936, int64_t positions = 40960) {
  return with_size(
      {.family = "qwen3", .vocab_size = vocab, .max_positions = positions, .rms_norm_eps = 1e-6, .rope_theta = 1e6},
      size);
}

}  // namespace

const Family& qwen3() {
  static const Family family{.name = "qwen3",
                             .architecture = "Qwen3ForCausalLM",
                             .block_class = "Qwen3DecoderLayer",
                             .presets = {{"qwen3-0.6b", qwen3_of({1024, 3072, 28, 16, 8, 128, true})},
                                         {"qwen3-1.7b", qwen3_of({2048, 6144, 28, 16, 8, 128, true})},
                                         {"qwen3-4b", qwen3_of({2560, 9728, 36, 32, 8, 128, true})},
                                         {"qwen3-8b", qwen3_of({4096, 12288, 36, 32, 8, 128, false})},
                                         {"qwen3-14b", qwen3_of({5120, 17408, 40, 40, 8, 128, false})},
                                         {"qwen3-32b", qwen3_of({5120, 25600, 64, 64, 8, 128, false})},
                                         // Small ones for a laptop: byte-level (256 bytes and an end mark, padded to
                                         // 512), or with a small tokenizer.
                                         {"qwen3-tiny", qwen3_of({128, 384, 4, 4, 2, 32, true}, 512, 1024)},
                                         {"qwen3-30m", qwen3_of({512, 1536, 8, 8, 4, 64, true}, 8192, 2048)},
                                         // torchtitan's debugmodel, for its test tokenizer.
                                         {"qwen3-debug", qwen3_of({256, 3072, 8, 16, 8, 128, true}, 2048, 4096)}},
                             .read = read_qwen3,
                             .write = write_qwen3,
                             .build = build_decoder<Qwen3Attention>,
                             .placements = decoder_placements(),
                             .stored = decoder_names()};
  return family;
}

}  // namespace trainyard::models
