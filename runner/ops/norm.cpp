#include "ops/norm.h"

#include "metrics/trace.h"
#include "ops/check.h"
#include "ops/cost.h"
#include "ops/kernels.h"

namespace trainyard::ops {

Tensor sum_of_squares(const Tensor& x) {
  const metrics::TraceSpan span("sum_of_squares", "op");
  require_floating("sum_of_squares", "x", x);
  tell_cost({&x});
  if (dry_run()) return Tensor::zeros({1}, DType::Float64, x.device());
  return kernel("sum_of_squares", &Kernels::sum_of_squares, {&x})(x);
}

bool all_finite(const Tensor& x) {
  const metrics::TraceSpan span("all_finite", "op");
  require_floating("all_finite", "x", x);
  tell_cost({&x});
  return dry_run() || kernel("all_finite", &Kernels::all_finite, {&x})(x);
}

}  // namespace trainyard::ops
