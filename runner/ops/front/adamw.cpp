#include "ops/adamw.h"

#include <fmt/format.h>

#include <stdexcept>
#include <vector>

#include "metrics/trace.h"
#include "ops/check.h"
#include "ops/cost.h"
#include "ops/kernels.h"

namespace trainyard::ops {

void adamw_step(std::span<AdamWTensor> tensors, const AdamWStep& step) {
  const metrics::TraceSpan span("adamw_step", "op");
  if (tensors.empty()) return;
  const DType moments = tensors.front().m.dtype() == DType::BFloat16 ? DType::BFloat16 : DType::Float32;
  std::vector<const Tensor*> all, touched;
  for (const AdamWTensor& each : tensors) {
    if (each.step < 1) throw std::invalid_argument(fmt::format("adamw_step: step {}; the first is 1", each.step));
    require("adamw_step", "param", each.param, each.param.shape(), DType::Float32);
    require("adamw_step", "grad", each.grad, each.param.shape(), DType::Float32);
    require("adamw_step", "m", each.m, each.param.shape(), moments);
    require("adamw_step", "v", each.v, each.param.shape(), moments);
    all.insert(all.end(), {&each.param, &each.grad, &each.m, &each.v});
    touched.insert(touched.end(), {&each.param, &each.grad, &each.m, &each.v, &each.param, &each.m, &each.v});
  }
  tell_cost(touched);
  if (step.grad_scale.defined()) {
    require("adamw_step", "grad_scale", step.grad_scale, {1}, DType::Float32);
    all.push_back(&step.grad_scale);
  }
  kernel("adamw_step", &Kernels::adamw_step, all)(tensors, step);
}

}  // namespace trainyard::ops
