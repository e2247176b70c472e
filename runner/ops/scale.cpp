#include "ops/scale.h"

#include <cstring>

#include "metrics/trace.h"
#include "ops/check.h"
#include "ops/cost.h"
#include "ops/cpu/kernels.h"

namespace trainyard::ops {

void scale(Tensor& x, float factor) {
  const metrics::TraceSpan span("scale", "op");
  require_floating("scale", "x", x);
  tell_cost({&x, &x});
  cpu::scale(x, factor);
}

void set_zero(Tensor& x) {
  const metrics::TraceSpan span("set_zero", "op");
  require_count("set_zero", "x", x, x.count());
  tell_cost({&x});
  if (x.count() > 0 && !dry_run()) std::memset(x.raw(), 0, x.bytes());
}

}  // namespace trainyard::ops
