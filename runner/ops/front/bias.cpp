#include "ops/bias.h"

#include "metrics/trace.h"
#include "ops/check.h"
#include "ops/cost.h"
#include "ops/kernels.h"

namespace trainyard::ops {

void add_bias(Tensor& y, const Tensor& bias) {
  const metrics::TraceSpan span("add_bias", "op");
  require_rank("add_bias", "y", y, 2);
  require_floating("add_bias", "y", y);
  require("add_bias", "bias", bias, {y.size(1)}, y.dtype());
  tell_cost({&y, &y});
  kernel("add_bias", &Kernels::add_bias, {&y, &bias})(y, bias);
}

void bias_backward(const Tensor& dy, Tensor& dbias) {
  const metrics::TraceSpan span("bias_backward", "op");
  require_rank("bias_backward", "dy", dy, 2);
  require_floating("bias_backward", "dy", dy);
  require_floating("bias_backward", "dbias", dbias);
  require("bias_backward", "dbias", dbias, {dy.size(1)}, dbias.dtype());
  tell_cost({&dy});
  kernel("bias_backward", &Kernels::bias_backward, {&dy, &dbias})(dy, dbias);
}

}  // namespace trainyard::ops
