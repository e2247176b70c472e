#pragma once

#include "tensor/tensor.h"

namespace trainyard::ops {

/// A target that does not count.
constexpr int32_t kIgnoredTarget = -100;

struct LossSums {
  double loss_sum = 0;  ///< of the valid targets' cross-entropies, natural logarithm
  int64_t valid = 0;    ///< targets that are not kIgnoredTarget
  int64_t correct = 0;  ///< of those, targets with the largest logit; only cross_entropy() counts them
};

/// LossSums where they were computed: to read them is to wait for the device.
class Loss {
 public:
  Loss() = default;  ///< zeros
  explicit Loss(const LossSums& sums) : host_(sums) {}
  /// `sums` float64 [3] on a device: the members in their order.
  explicit Loss(Tensor sums) : device_(std::move(sums)) {}
  /// `loss_sum` float64 [1] wherever it was computed, of `valid` targets.
  Loss(Tensor loss_sum, int64_t valid) : host_{.valid = valid}, loss_sum_(std::move(loss_sum)) {}
  [[nodiscard]] LossSums read() const;
  /// Float64 [3], the members in their order, on the device where they were computed: nothing is waited for.
  [[nodiscard]] Tensor sums() const;

 private:
  LossSums host_;
  Tensor device_;    // undefined: host_ has them
  Tensor loss_sum_;  // defined: in place of host_'s
};

/// What each token must predict, and which tokens count: on the host, as the sizes of products follow from it, and for
/// a device there.
class Targets {
 public:
  Targets() = default;
  /// `values`: int32 [tokens], kIgnoredTarget where nothing counts. A device that has them is waited for.
  Targets(const Tensor& values);  // NOLINT(google-explicit-constructor): they are targets as they are
  /// What is needed on `device` is copied there now, and not when it is used.
  Targets(const Tensor& values, Device device);

  [[nodiscard]] const Tensor& values() const { return values_; }  ///< on the host
  /// The tokens that count, in their order: int32, on the host.
  [[nodiscard]] const Tensor& valid() const { return valid_; }
  [[nodiscard]] Tensor values_on(Device device) const;
  [[nodiscard]] Tensor valid_on(Device device) const;

 private:
  Tensor values_, valid_;
  Tensor values_there_, valid_there_;  // undefined: nothing was copied
};

/// Cross-entropy of softmax(h · wᵀ) against `targets`, fused with the head: the logits exist for one chunk of tokens at
/// a time, never whole, and tokens whose target is ignored cost nothing.
///   h  [tokens, hidden]      w  [vocab, hidden], the same dtype, float32, bfloat16 or float16
///   targets  [tokens]
///   token_loss  null, or [tokens] float32: each token's loss, 0 where ignored
/// In bfloat16 the logits are rounded to it before the float32 softmax, as transformers does.
/// Throws std::invalid_argument where shapes or dtypes do not fit, or naming a target outside [0, vocab) that is not
/// kIgnoredTarget. Zero tokens give zero sums.
Loss linear_cross_entropy(const Tensor& h, const Tensor& w, const Targets& targets, Tensor* token_loss = nullptr);

struct LossGradients {
  float grad_scale = 1;  ///< d(objective) / d(loss_sum): for the mean over a global batch 1 / its valid targets
  Tensor dh;             ///< [tokens, hidden], h's dtype: written
  Tensor dw;             ///< [vocab, hidden], float32, bfloat16 or float16: added to; undefined: none
};

/// The loss and, in the same pass over the chunks, its gradients: the logits are computed once.
Loss linear_cross_entropy_with_gradients(const Tensor& h, const Tensor& w, const Targets& targets,
                                         LossGradients gradients, Tensor* token_loss = nullptr);

/// The same of logits that are there, as a classifier's few are: logits [rows, classes], targets [rows].
///   dlogits  null, or like logits: written grad_scale · d(loss_sum) / d(logits), 0 in rows whose target is ignored
/// Of equal logits the first counts as the largest. Throws as linear_cross_entropy().
Loss cross_entropy(const Tensor& logits, const Tensor& targets, float grad_scale = 1, Tensor* dlogits = nullptr);

}  // namespace trainyard::ops
