#include "ops/cast.h"

#include "metrics/trace.h"
#include "ops/check.h"
#include "ops/cost.h"
#include "ops/cpu/kernels.h"

namespace trainyard::ops {

void cast(const Tensor& from, Tensor& to) {
  const metrics::TraceSpan span("cast", "op");
  require_floating("cast", "from", from);
  require_floating("cast", "to", to);
  require_count("cast", "to", to, from.count());
  tell_cost({&from, &to});
  if (from.dtype() == to.dtype()) return copy(from, to);
  cpu::cast(from, to);
}

}  // namespace trainyard::ops
