#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "models/language_model.h"
#include "nn/layers.h"

namespace trainyard::models {

inline nn::Init init_of(const ModelConfig& config) {
  return {nn::Init::Kind::Normal, static_cast<float>(config.initializer_range)};
}

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

/// Embedding, blocks, final norm, head: the frame that the decoder families share, under Hugging Face's names.
class Decoder : public LanguageModel {
 public:
  using MakeBlock = std::function<std::unique_ptr<DecoderBlock>(const ModelConfig& config, int layer)>;
  Decoder(const ModelConfig& config, const MakeBlock& make_block);

  ops::LossSums loss(const Batch& batch, const Pass& pass) override;
  Tensor logits(const Batch& batch) override;
  Tensor next_logits(const std::vector<int32_t>& ids, std::vector<nn::KeyValueCache>& caches) override;
  [[nodiscard]] std::vector<nn::KeyValueCache> new_caches(int64_t capacity) const override;
  [[nodiscard]] std::vector<nn::Module*> blocks() override;
  [[nodiscard]] const ModelConfig& config() const override { return config_; }

 private:
  nn::Variable hidden(const Tensor& input_ids, const nn::DecoderContext& context, nn::Tape* tape);
  nn::DecoderContext context_of(const Batch& batch);
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
  std::optional<nn::Linear> head_;  // none where it is tied to the embedding
  ops::RopeTables rope_;            // grows to the longest sequence seen
};

}  // namespace trainyard::models
