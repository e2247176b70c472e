#include "ops/multiply.h"

#include "metrics/trace.h"
#include "ops/check.h"
#include "ops/cost.h"
#include "ops/cpu/kernels.h"

namespace trainyard::ops {

void multiply(const Tensor& a, const Tensor& b, Tensor& y) {
  const metrics::TraceSpan span("multiply", "op");
  require_floating("multiply", "a", a);
  require("multiply", "b", b, a.shape(), a.dtype());
  require("multiply", "y", y, a.shape(), a.dtype());
  tell_cost({&a, &b, &y});
  cpu::multiply(a, b, y);
}

}  // namespace trainyard::ops
