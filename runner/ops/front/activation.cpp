#include "ops/activation.h"

#include "metrics/trace.h"
#include "ops/check.h"
#include "ops/cost.h"
#include "ops/kernels.h"

namespace trainyard::ops {

void activation(Activation f, const Tensor& x, Tensor& y) {
  const metrics::TraceSpan span("activation", "op");
  require_floating("activation", "x", x);
  require("activation", "y", y, x.shape(), x.dtype());
  tell_cost({&x, &y});
  kernel("activation", &Kernels::activation, {&x, &y})(f, x, y);
}

void activation_backward(Activation f, const Tensor& dy, const Tensor& x, Tensor& dx) {
  const metrics::TraceSpan span("activation_backward", "op");
  require_floating("activation_backward", "x", x);
  require("activation_backward", "dy", dy, x.shape(), x.dtype());
  require("activation_backward", "dx", dx, x.shape(), x.dtype());
  tell_cost({&dy, &x, &dx});
  kernel("activation_backward", &Kernels::activation_backward, {&dy, &x, &dx})(f, dy, x, dx);
}

}  // namespace trainyard::ops
