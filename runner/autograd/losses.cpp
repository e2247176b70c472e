#include "autograd/functions.h"

#include "ops/sum.h"

namespace trainyard::autograd {

Tensor sum(const Variable& x, float gradient_scale) {
  if (x.tape()) {
    Tensor gradient = empty_like(x.value());
    ops::fill(gradient, gradient_scale);
    x.tape()->record([gradient, dx = x.gradient()] { dx->add(gradient); });
  }
  return ops::sum(x.value());
}

ops::Loss cross_entropy(const Variable& logits, const Tensor& targets, float gradient_scale) {
  if (!logits.tape()) return ops::cross_entropy(logits.value(), targets);
  Tensor gradient = empty_like(logits.value());
  const ops::Loss loss = ops::cross_entropy(logits.value(), targets, gradient_scale, &gradient);
  logits.tape()->record([gradient, dlogits = logits.gradient()] { dlogits->add(gradient); });
  return loss;
}

ops::Loss linear_cross_entropy(const Variable& input, Parameter& head, const ops::Targets& targets,
                               float gradient_scale) {
  const Variable h = cast(input, head.value().dtype());
  if (!h.tape()) return ops::linear_cross_entropy(h.value(), head.value(), targets);
  Tensor gradient = empty_like(h.value());
  const Tensor head_gradient = head.is_frozen() ? Tensor() : head.gradient();
  const ops::Loss loss = ops::linear_cross_entropy_with_gradients(h.value(), head.value(), targets,
                                                                  {gradient_scale, gradient, head_gradient});
  h.tape()->record([gradient, dh = h.gradient()] { dh->add(gradient); });
  return loss;
}

}  // namespace trainyard::autograd
