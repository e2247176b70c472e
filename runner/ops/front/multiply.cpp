#include "ops/multiply.h"

#include "metrics/trace.h"
#include "ops/check.h"
#include "ops/cost.h"
#include "ops/kernels.h"

namespace trainyard::ops {

void multiply(const Tensor& a, const Tensor& b, Tensor& y) {
  const metrics::TraceSpan span("multiply", "op");
  require_floating("multiply", "a", a);
  require("multiply", "b", b, a.shape(), a.dtype());
  require("multiply", "y", y, a.shape(), a.dtype());
  tell_cost({&a, &b, &y});
  kernel("multiply", &Kernels::multiply, {&a, &b, &y})(a, b, y);
}

}  // namespace trainyard::ops
