#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "models/model.h"
#include "nn/attention.h"

namespace trainyard::models {

/// A text that a model is making: what it has seen of it. The model outlives it.
class Text {
 public:
  explicit Text(std::vector<int32_t> opening) : opening_(std::move(opening)) {}
  virtual ~Text() = default;

  /// What next() is to be given first: a decoder's prompt, an encoder-decoder's start token.
  [[nodiscard]] const std::vector<int32_t>& opening() const { return opening_; }
  /// Logits [vocab] after the last of `ids`, which join the text.
  virtual Tensor next(const std::vector<int32_t>& ids) = 0;

 private:
  std::vector<int32_t> opening_;
};

/// A model that makes text.
class LanguageModel : public Model {
 public:
  using Model::Model;

  /// [rows, tokens, vocab] in the dtype of the parameters.
  virtual Tensor logits(const Batch& batch) = 0;

  /// Begins a text with room for `new_tokens` after its opening. Decoders go on from `prompt`, encoder-decoders answer
  /// it.
  virtual std::unique_ptr<Text> begin(const std::vector<int32_t>& prompt, int64_t new_tokens) = 0;
  [[nodiscard]] virtual bool continues_prompt() const { return true; }
};

/// `model` as one that makes text. Throws InputError naming its family where it does not.
LanguageModel& language_model(Model& model);

}  // namespace trainyard::models
