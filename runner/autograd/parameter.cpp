#include "autograd/parameter.h"

#include "ops/scale.h"

namespace trainyard::autograd {

Tensor Parameter::dequantized() const {
  if (!is_nf4_) return value_;
  const MemoryKindScope scope(MemoryKind::Gathered);
  Tensor made = Tensor::empty(shape_, compute_dtype_, value_.device());
  ops::nf4_dequantize(value_, nf4_scales_, made);
  return made;
}

Parameter::GradientSum Parameter::gradient_sum() {
  if (prepare_gradient_) prepare_gradient_();
  return {gradient_, !std::exchange(is_gradient_new_, false)};
}

Tensor& Parameter::gradient() {
  const GradientSum to = gradient_sum();
  if (!to.accumulate) ops::set_zero(to.sum);
  return to.sum;
}

}  // namespace trainyard::autograd
