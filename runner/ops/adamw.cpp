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
  std::vector<const Tensor*> all, touched;
  for (const AdamWTensor& each : tensors) {
    if (each.step < 1) throw std::invalid_argument(fmt::format("adamw_step: step {}; the first is 1", each.step));
    require("adamw_step", "param", each.param, each.param.shape(), DType::Float32);
    require("adamw_step", "grad", each.grad, each.param.shape(), DType::Float32);
    const bool are_half = tensors.front().m.dtype() == DType::BFloat16;
    for (const Tensor* const moment : {&each.m, &each.v})
      require("adamw_step", moment == &each.m ? "m" : "v", *moment, each.param.shape(),
              are_half ? DType::BFloat16 : DType::Float32);
    all.insert(all.end(), {&each.param, &each.grad, &each.m, &each.v});
  }
  if (all.empty()) return;
  touched = all;
  for (const AdamWTensor& each : tensors) touched.insert(touched.end(), {&each.param, &each.m, &each.v});  // written
  tell_cost(touched);
  if (step.grad_scale.defined()) {
    require("adamw_step", "grad_scale", step.grad_scale, {1}, DType::Float32);
    all.push_back(&step.grad_scale);
  }
  kernel("adamw_step", &Kernels::adamw_step, all)(tensors, step);
}

}  // namespace trainyard::ops
