#include "ops/add.h"

#include "metrics/trace.h"
#include "ops/check.h"
#include "ops/cost.h"
#include "ops/kernels.h"

namespace trainyard::ops {

void add(const Tensor& a, const Tensor& b, Tensor& out) {
  const metrics::TraceSpan span("add", "op");
  require_floating("add", "a", a);
  require("add", "b", b, a.shape(), a.dtype());
  require("add", "out", out, a.shape(), a.dtype());
  tell_cost({&a, &b, &out});
  kernel("add", &Kernels::add, {&a, &b, &out})(a, b, out);
}

void add_to(Tensor& total, const Tensor& addend) {
  const metrics::TraceSpan span("add_to", "op");
  require_floating("add_to", "total", total);
  require_floating("add_to", "addend", addend);
  require_count("add_to", "addend", addend, total.count());
  tell_cost({&total, &addend, &total});
  kernel("add_to", &Kernels::add_to, {&total, &addend})(total, addend);
}

}  // namespace trainyard::ops
