#include "ops/sum.h"

#include "metrics/trace.h"
#include "ops/check.h"
#include "ops/cpu/kernels.h"

namespace trainyard::ops {

double sum(const Tensor& x) {
  const metrics::TraceSpan span("sum", "op");
  require_floating("sum", "x", x);
  return cpu::sum(x);
}

void fill(Tensor& x, float value) {
  const metrics::TraceSpan span("fill", "op");
  require_floating("fill", "x", x);
  cpu::fill(x, value);
}

}  // namespace trainyard::ops
