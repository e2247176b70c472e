#include <cmath>
#include <utility>

#include "ops/adamw_factors.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/simd.h"

namespace trainyard::ops::cpu {
namespace {

TRAINYARD_MULTIVERSION void update(float* param, const float* grad, float* m, float* v, float grad_scale,
                                   const AdamWFactors& factors, int64_t count) {
  const AdamWFactors f = factors;  // by value: the stores below cannot change it
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float g = grad[i] * grad_scale;
    const float first = f.beta1 * m[i] + f.rest1 * g;
    const float second = f.beta2 * v[i] + f.rest2 * g * g;
    m[i] = first;
    v[i] = second;
    param[i] =
        param[i] * f.keep - f.step_size * (first / (__builtin_sqrtf(second) * f.inverse_root_correction2 + f.eps));
  }
}

}  // namespace

void adamw_step(std::span<AdamWTensor> tensors, const AdamWStep& step) {
  if (dry_run()) return;
  const float grad_scale = step.grad_scale.defined() ? step.grad_scale.data<float>()[0] : 1;
  if (std::isnan(grad_scale)) return;
  for (AdamWTensor& each : tensors) {
    const AdamWFactors factors = factors_of(step, each);
    float *const param = each.param.data<float>(), *const m = each.m.data<float>(), *const v = each.v.data<float>();
    parallel_for(each.param.count(), kElementGrain,
                 [=, &factors, grad = std::as_const(each.grad).data<float>()](int64_t begin, int64_t end) {
                   update(param + begin, grad + begin, m + begin, v + begin, grad_scale, factors, end - begin);
                 });
  }
}

}  // namespace trainyard::ops::cpu
