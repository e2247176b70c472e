#include "ops/bias.h"

#include "metrics/trace.h"
#include "ops/check.h"
#include "ops/cost.h"
#include "ops/cpu/kernels.h"

namespace trainyard::ops {

void add_bias(Tensor& y, const Tensor& bias) {
  const metrics::TraceSpan span("add_bias", "op");
  require_rank("add_bias", "y", y, 2);
  require_floating("add_bias", "y", y);
  require("add_bias", "bias", bias, {y.size(1)}, y.dtype());
  tell_cost({&y, &y});
  cpu::add_bias(y, bias);
}

void bias_backward(const Tensor& dy, Tensor& dbias) {
  const metrics::TraceSpan span("bias_backward", "op");
  require_rank("bias_backward", "dy", dy, 2);
  require_floating("bias_backward", "dy", dy);
  require_floating("bias_backward", "dbias", dbias);
  require("bias_backward", "dbias", dbias, {dy.size(1)}, dbias.dtype());
  tell_cost({&dy});
  cpu::bias_backward(dy, dbias);
}

}  // namespace trainyard::ops
