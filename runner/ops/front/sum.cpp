#include "ops/sum.h"

#include "metrics/trace.h"
#include "ops/check.h"
#include "ops/kernels.h"

namespace trainyard::ops {

Tensor sum(const Tensor& x) {
  const metrics::TraceSpan span("sum", "op");
  require_floating("sum", "x", x);
  return kernel("sum", &Kernels::sum, {&x})(x);
}

void fill(Tensor& x, float value) {
  const metrics::TraceSpan span("fill", "op");
  require_floating("fill", "x", x);
  kernel("fill", &Kernels::fill, {&x})(x, value);
}

}  // namespace trainyard::ops
