#pragma once

#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "models/model.h"
#include "nn/attention.h"
#include "nn/output_head.h"

namespace trainyard::models {

/// Texts that a model is making side by side: what it has seen of them. The model outlives them.
class Texts {
 public:
  explicit Texts(std::vector<int32_t> opening) : opening_(std::move(opening)) {}
  virtual ~Texts() = default;

  /// What next() is to be given first: a decoder's prompt, an encoder-decoder's start tokens.
  [[nodiscard]] const std::vector<int32_t>& opening() const { return opening_; }
  /// Logits [texts, vocab] after the last of each text's `ids`, which join it. After the opening one id a text.
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

  using Prompts = std::vector<std::vector<int32_t>>;

  /// Begins texts with room for `new_tokens` after their openings. Decoders go on from their prompt, and take one;
  /// encoder-decoders answer theirs.
  virtual std::unique_ptr<Texts> begin(const Prompts& prompts, int64_t new_tokens) = 0;
  [[nodiscard]] virtual bool continues_prompt() const { return true; }

  /// Whether its rows can be split among ranks.
  [[nodiscard]] virtual bool can_split_rows() const { return false; }
  /// From now on loss() takes batches whose rows are parts of longer ones, and attends by `split`. Only where
  /// can_split_rows().
  virtual void split_rows(std::unique_ptr<nn::SplitAttention>) {
    throw std::logic_error("split_rows: this model's rows cannot be split");
  }

  /// What takes the place of the head's product from now on.
  void set_output_head(std::unique_ptr<nn::OutputHead> head) { output_head_ = std::move(head); }

 protected:
  [[nodiscard]] nn::OutputHead& output_head() const { return *output_head_; }

 private:
  std::unique_ptr<nn::OutputHead> output_head_ = std::make_unique<nn::OutputHead>();
};

/// `model` as one that makes text. Throws InputError naming its family where it does not.
LanguageModel& language_model(Model& model);

}  // namespace trainyard::models
