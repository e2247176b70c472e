#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/family.h"
#include "models/language_model.h"
#include "nn/layers.h"
#include "nn/remembered.h"

namespace trainyard::models {

/// One block of a decoder: [batch · tokens, hidden] → the same.
class DecoderBlock : public nn::Module {
 public:
  using Module::Module;
  nn::Variable operator()(const nn::Variable& x, const nn::DecoderContext& context) {
    return run(x, [this, context](const nn::Variable& input) { return forward(input, context); });
  }

 protected:
  virtual nn::Variable forward(const nn::Variable& x, const nn::DecoderContext& context) = 0;
};

inline nn::Heads heads_of(const ModelConfig& config, int layer) {
  return {config.heads, config.kv_heads, config.head_dim, window_of(config, layer)};
}

/// Causal attention with grouped heads (Ainslie et al. 2023) and rotary positions, inside the layer's window.
class RotaryAttention : public nn::Module {
 public:
  /// `bias`: of q, k and v.
  RotaryAttention(const std::string& name, const ModelConfig& c, int layer, nn::Bias bias = nn::Bias::No);
  nn::Variable operator()(const nn::Variable& input, const nn::DecoderContext& context) const;

 private:
  nn::Linear q_proj_, k_proj_, v_proj_, o_proj_;
  nn::Heads heads_;
  int layer_;
};

/// The block of Llama and its kin: attention, then a SwiGLU, each on the norm of what came before and added to it.
/// Attention: a Module made of (name, config, layer), called with (x, context).
template <typename Attention>
class PreNormBlock : public DecoderBlock {
 public:
  PreNormBlock(const ModelConfig& c, int layer)
      : DecoderBlock("model.layers." + std::to_string(layer)),
        class_name_(family_of(c).block_class),
        attention_norm_(name_of("input_layernorm"), c.hidden_size, static_cast<float>(c.rms_norm_eps)),
        attention_(name_of("self_attn"), c, layer),
        feed_forward_norm_(name_of("post_attention_layernorm"), c.hidden_size, static_cast<float>(c.rms_norm_eps)),
        feed_forward_(name_of("mlp"), c.hidden_size, c.intermediate_size, init_of(c)) {
    add_child(attention_norm_), add_child(attention_), add_child(feed_forward_norm_), add_child(feed_forward_);
  }
  [[nodiscard]] std::string_view class_name() const override { return class_name_; }

 protected:
  nn::Variable forward(const nn::Variable& x, const nn::DecoderContext& context) override {
    const auto [h, normed] = feed_forward_norm_.of_sum(x, attention_(attention_norm_(x), context));
    return add(h, feed_forward_(normed));
  }

 private:
  std::string_view class_name_;
  nn::RmsNorm attention_norm_;
  Attention attention_;
  nn::RmsNorm feed_forward_norm_;
  nn::SwiGlu feed_forward_;
};

/// Embedding, blocks, final norm, head: the frame that the decoder families share, under Hugging Face's names.
class Decoder : public LanguageModel {
 public:
  using MakeBlock = std::function<std::unique_ptr<DecoderBlock>(const ModelConfig& config, int layer)>;
  Decoder(const ModelConfig& config, const MakeBlock& make_block);

  using Model::loss;
  ops::Loss loss(const Inputs& inputs, const Pass& pass) override;
  Tensor logits(const Batch& batch) override;
  std::unique_ptr<Texts> begin(const Prompts& prompts, int64_t new_tokens) override;
  [[nodiscard]] std::vector<nn::Module*> blocks() override;
  [[nodiscard]] const ModelConfig& config() const override { return config_; }
  [[nodiscard]] bool can_split_rows() const override { return true; }
  void split_rows(std::unique_ptr<nn::SplitAttention> split) override { split_ = std::move(split); }

 private:
  class Continuation;

  nn::Variable hidden(const Tensor& input_ids, const nn::DecoderContext& context, nn::Tape* tape);
  nn::DecoderContext context_of(const Inputs& inputs);
  const ops::RopeTables& rope_tables(int64_t positions);
  /// Runs `body` as the forward of the head, where it is a module of its own.
  void run_head(nn::Tape* tape, const std::function<void()>& body) { head_ ? head_->run_root(tape, body) : body(); }
  nn::Parameter& head() { return head_ ? head_->weight() : embed_tokens_.weight(); }

  /// All but the head, as transformers groups them: "model".
  struct Stack : nn::Module {
    using Module::add_child;
    using Module::Module;
  };

  ModelConfig config_;
  Stack stack_;
  nn::Embedding embed_tokens_;
  std::vector<std::unique_ptr<DecoderBlock>> layers_;
  nn::RmsNorm norm_;
  std::optional<nn::Linear> head_;                       // none where it is tied to the embedding
  std::unique_ptr<nn::SplitAttention> split_;            // null: rows are whole
  ops::RopeTables rope_;                                 // grows to the longest sequence seen
  nn::Remembered<std::pair<int64_t, int64_t>> counted_;  // positions of [rows, tokens]
};

/// A decoder of PreNormBlock<Attention>.
template <typename Attention>
std::unique_ptr<Model> build_decoder(const ModelConfig& config) {
  return std::make_unique<Decoder>(
      config, [](const ModelConfig& c, int layer) { return std::make_unique<PreNormBlock<Attention>>(c, layer); });
}

}  // namespace trainyard::models
