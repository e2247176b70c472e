// Llama 2 and 3 (Touvron et al. 2023, Dubey et al. 2024), under the names of Hugging Face's LlamaForCausalLM.
#include "models/llama.h"

namespace trainyard::models {
namespace {

using nn::Variable;

class LlamaAttention : public nn::Module {
 public:
  LlamaAttention(const std::string& name, const ModelConfig& c, int layer)
      : Module(name),
        q_proj_(name_of("q_proj"), c.hidden_size, c.heads * c.head_dim, init_of(c)),
        k_proj_(name_of("k_proj"), c.hidden_size, c.kv_heads * c.head_dim, init_of(c)),
        v_proj_(name_of("v_proj"), c.hidden_size, c.kv_heads * c.head_dim, init_of(c)),
        o_proj_(name_of("o_proj"), c.heads * c.head_dim, c.hidden_size, init_of(c)),
        heads_{c.heads, c.kv_heads, c.head_dim},
        layer_(layer) {
    add_child(q_proj_), add_child(k_proj_), add_child(v_proj_), add_child(o_proj_);
  }

  Variable operator()(const Variable& input, const nn::DecoderContext& context) const {
    return run(input, [this, context](const Variable& x) {
      const Variable q = nn::rotate(q_proj_(x), context), k = nn::rotate(k_proj_(x), context);
      return o_proj_(nn::causal_attention(q, k, v_proj_(x), heads_, layer_, context));
    });
  }

 private:
  nn::Linear q_proj_, k_proj_, v_proj_, o_proj_;
  nn::Heads heads_;
  int layer_;
};

class LlamaBlock : public DecoderBlock {
 public:
  LlamaBlock(const ModelConfig& c, int layer)
      : DecoderBlock("model.layers." + std::to_string(layer)),
        attention_norm_(name_of("input_layernorm"), c.hidden_size, static_cast<float>(c.rms_norm_eps)),
        attention_(name_of("self_attn"), c, layer),
        feed_forward_norm_(name_of("post_attention_layernorm"), c.hidden_size, static_cast<float>(c.rms_norm_eps)),
        feed_forward_(name_of("mlp"), c.hidden_size, c.intermediate_size, init_of(c)) {
    add_child(attention_norm_), add_child(attention_), add_child(feed_forward_norm_), add_child(feed_forward_);
  }
  [[nodiscard]] std::string_view class_name() const override { return "LlamaDecoderLayer"; }

 protected:
  Variable forward(const Variable& x, const nn::DecoderContext& context) override {
    const Variable h = add(x, attention_(attention_norm_(x), context));
    return add(h, feed_forward_(feed_forward_norm_(h)));
  }

 private:
  nn::RmsNorm attention_norm_;
  LlamaAttention attention_;
  nn::RmsNorm feed_forward_norm_;
  nn::SwiGlu feed_forward_;
};

}  // namespace

std::unique_ptr<LanguageModel> build_llama(const ModelConfig& config) {
  return std::make_unique<Decoder>(
      config, [](const ModelConfig& c, int layer) { return std::make_unique<LlamaBlock>(c, layer); });
}

}  // namespace trainyard::models
