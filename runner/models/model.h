#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "data/batch.h"
#include "models/config.h"
#include "models/inputs.h"
#include "nn/dropout.h"
#include "nn/module.h"
#include "ops/cross_entropy.h"

namespace trainyard::models {

using data::Batch;

/// How a batch goes through a model.
struct Pass {
  float gradient_scale = 1;                   ///< backward() adds the gradient of loss_sum · gradient_scale
  nn::Tape* tape = nullptr;                   ///< null: no backward follows
  std::optional<uint64_t> dropout_seed = {};  ///< none, as everywhere but in training: nothing is dropped
};

/// How transformers' models begin.
inline nn::Init init_of(const ModelConfig& config) {
  return {nn::Init::Kind::Normal, static_cast<float>(config.initializer_range)};
}

/// What a training loop asks of any model. Knows nothing of ranks.
class Model : public nn::Module {
 public:
  using Module::Module;

  /// Where its parameters were placed, and so where it computes.
  [[nodiscard]] Device device() const { return parameters().front()->value().device(); }

  /// What loss() needs of the batch. Throws InputError where that lacks it.
  [[nodiscard]] virtual Inputs inputs(const Batch& batch) const { return {batch, device()}; }
  /// The loss in float32, summed over the batch's valid targets (cross-entropies with the natural logarithm). With a
  /// tape: backward() then adds to every parameter's gradient.
  virtual ops::Loss loss(const Inputs& inputs, const Pass& pass) = 0;
  ops::Loss loss(const Batch& batch, const Pass& pass) { return loss(inputs(batch), pass); }
  /// What `batch` adds to the number that a step's loss is divided by: its valid targets, so that the loss is their
  /// mean.
  [[nodiscard]] virtual double loss_weight(const Batch& batch) const { return static_cast<double>(batch.valid_tokens); }

  /// The repeated blocks, first to last: the units of sharding and of recomputation.
  [[nodiscard]] virtual std::vector<nn::Module*> blocks() = 0;
  [[nodiscard]] virtual const ModelConfig& config() const = 0;

 protected:
  /// Drops at `rate` where the pass does at all.
  [[nodiscard]] static nn::DropoutContext dropout_of(double rate, const Inputs& inputs, const Pass& pass);
};

/// The model that `config` describes, its parameters without memory yet.
std::unique_ptr<Model> build(const ModelConfig& config);

}  // namespace trainyard::models
