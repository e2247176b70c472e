#pragma once

#include "autograd/functions.h"
#include "nn/module.h"

namespace trainyard::nn {

/// The product with the vocabulary at the end of a model, and the loss of it. Tensor parallelism puts another in its
/// place, where each rank has a part of the vocabulary.
class OutputHead {
 public:
  OutputHead() = default;
  OutputHead(const OutputHead&) = delete;
  OutputHead& operator=(const OutputHead&) = delete;
  virtual ~OutputHead() = default;

  /// Which piece of the tokens each block has, where ranks split them; they are equally long.
  [[nodiscard]] virtual int piece() const { return 0; }
  /// What the last norm gave, of all `count` tokens: h [count, hidden].
  [[nodiscard]] virtual Variable whole(const Variable& h, int64_t count) { return autograd::first_rows(h, count); }
  /// The loss of the tokens of `targets`, of which h may be a part (autograd::linear_cross_entropy()).
  [[nodiscard]] virtual ops::Loss loss(const Variable& h, Parameter& weight, const ops::Targets& targets,
                                       float gradient_scale) {
    return autograd::linear_cross_entropy(h, weight, targets, gradient_scale);
  }
  /// h of whole() → [count, vocab].
  [[nodiscard]] virtual Variable logits(const Variable& h, Parameter& weight) { return autograd::linear(h, weight); }
};

}  // namespace trainyard::nn
