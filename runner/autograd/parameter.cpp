#include "autograd/parameter.h"

#include "ops/scale.h"

namespace trainyard::autograd {

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
