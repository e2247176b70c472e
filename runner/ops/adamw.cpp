#include "ops/adamw.h"

#include <fmt/format.h>

#include <stdexcept>

#include "metrics/trace.h"
#include "ops/check.h"
#include "ops/cost.h"
#include "ops/kernels.h"

namespace trainyard::ops {

void adamw_step(Tensor& param, const Tensor& grad, Tensor& m, Tensor& v, const AdamWStep& step) {
  const metrics::TraceSpan span("adamw_step", "op");
  if (step.step < 1) throw std::invalid_argument(fmt::format("adamw_step: step {}; the first is 1", step.step));
  require("adamw_step", "param", param, param.shape(), DType::Float32);
  require("adamw_step", "grad", grad, param.shape(), DType::Float32);
  require("adamw_step", "m", m, param.shape(), DType::Float32);
  require("adamw_step", "v", v, param.shape(), DType::Float32);
  tell_cost({&param, &grad, &m, &v, &param, &m, &v});
  kernel("adamw_step", &Kernels::adamw_step, {&param, &grad, &m, &v})(param, grad, m, v, step);
}

}  // namespace trainyard::ops
