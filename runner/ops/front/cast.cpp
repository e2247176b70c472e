#include "ops/cast.h"

#include "metrics/trace.h"
#include "ops/check.h"
#include "ops/cost.h"
#include "ops/kernels.h"

namespace trainyard::ops {

void cast(const Tensor& from, Tensor& to) {
  const metrics::TraceSpan span("cast", "op");
  require_count("cast", "from", from, from.count());
  if (from.dtype() != to.dtype()) {
    require_floating("cast", "from", from);
    require_floating("cast", "to", to);
  }
  require_count("cast", "to", to, from.count());
  tell_cost({&from, &to});
  const auto convert = kernel("cast", &Kernels::cast, {&from, &to});
  if (from.dtype() == to.dtype()) return copy(from, to);
  convert(from, to);
}

}  // namespace trainyard::ops
