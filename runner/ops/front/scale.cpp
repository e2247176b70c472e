#include "ops/scale.h"

#include "metrics/trace.h"
#include "ops/check.h"
#include "ops/cost.h"
#include "ops/kernels.h"

namespace trainyard::ops {

void scale(Tensor& x, float factor) {
  const metrics::TraceSpan span("scale", "op");
  require_floating("scale", "x", x);
  tell_cost({&x, &x});
  kernel("scale", &Kernels::scale, {&x})(x, factor);
}

void set_zero(Tensor& x) {
  const metrics::TraceSpan span("set_zero", "op");
  require_count("set_zero", "x", x, x.count());
  tell_cost({&x});
  kernel("set_zero", &Kernels::set_zero, {&x})(x);
}

}  // namespace trainyard::ops
