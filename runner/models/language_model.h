#pragma once

#include <memory>
#include <vector>

#include "models/config.h"
#include "nn/attention.h"
#include "nn/layers.h"
#include "ops/cross_entropy.h"

namespace trainyard::models {

/// Rows of tokens for one forward. There may be no row.
struct Tokens {
  Tensor input_ids;     ///< int32 [rows, tokens]
  Tensor targets;       ///< int32 [rows, tokens]: what each position must predict, -100 = ignored
  Tensor position_ids;  ///< int32 [rows, tokens], packed documents restart at 0; undefined: each row is one document
};

/// What a training loop and its tools ask of any language model. Knows nothing of ranks.
class LanguageModel : public nn::Module {
 public:
  using Module::Module;

  /// Cross-entropy in float32, summed over the valid targets, natural logarithm. With a tape: backward() then adds the
  /// gradient of loss_sum · gradient_scale to every parameter's gradient.
  virtual ops::LossSums loss(const Tokens& tokens, float gradient_scale, nn::Tape* tape) = 0;

  /// [rows, tokens, vocab] in the dtype of the parameters.
  virtual Tensor logits(const Tokens& tokens) = 0;

  /// Logits [vocab] after the last of `ids`, which follow the tokens that `caches` (of new_caches) hold, and join them.
  virtual Tensor next_logits(const std::vector<int32_t>& ids, std::vector<nn::KeyValueCache>& caches) = 0;
  [[nodiscard]] virtual std::vector<nn::KeyValueCache> new_caches(int64_t capacity) const = 0;

  /// The repeated blocks, first to last: the units of sharding and of recomputation.
  [[nodiscard]] virtual std::vector<nn::Module*> blocks() = 0;
  [[nodiscard]] virtual const ModelConfig& config() const = 0;
};

/// The model that `config` describes, its parameters without memory yet.
std::unique_ptr<LanguageModel> build(const ModelConfig& config);

}  // namespace trainyard::models
