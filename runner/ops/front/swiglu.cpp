#include "ops/swiglu.h"

#include "metrics/trace.h"
#include "ops/check.h"
#include "ops/cost.h"
#include "ops/kernels.h"

namespace trainyard::ops {

void swiglu(const Tensor& gate, const Tensor& up, Tensor& y) {
  const metrics::TraceSpan span("swiglu", "op");
  require_floating("swiglu", "gate", gate);
  require("swiglu", "up", up, gate.shape(), gate.dtype());
  require("swiglu", "y", y, gate.shape(), gate.dtype());
  tell_cost({&gate, &up, &y});
  kernel("swiglu", &Kernels::swiglu, {&gate, &up, &y})(gate, up, y);
}

void swiglu_backward(const Tensor& dy, const Tensor& gate, const Tensor& up, Tensor& dgate, Tensor& dup) {
  const metrics::TraceSpan span("swiglu_backward", "op");
  require_floating("swiglu_backward", "gate", gate);
  require("swiglu_backward", "up", up, gate.shape(), gate.dtype());
  require("swiglu_backward", "dy", dy, gate.shape(), gate.dtype());
  require("swiglu_backward", "dgate", dgate, gate.shape(), gate.dtype());
  require("swiglu_backward", "dup", dup, gate.shape(), gate.dtype());
  tell_cost({&dy, &gate, &up, &dgate, &dup});
  kernel("swiglu_backward", &Kernels::swiglu_backward, {&dy, &gate, &up, &dgate, &dup})(dy, gate, up, dgate, dup);
}

}  // namespace trainyard::ops
