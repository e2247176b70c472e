#include <cmath>

#include "ops/cpu/kernels.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/simd.h"

namespace trainyard::ops::cpu {
namespace {

/// The step's scalars as the loop takes them. The subtractions from 1 are done in double: 1 − 0.999F is off by 1e-5.
struct Factors {
  float grad_scale, keep, beta1, rest1, beta2, rest2, eps, step_size, inverse_root_correction2;
};

Factors factors_of(const AdamWStep& step) {
  const double correction1 = 1 - std::pow(step.beta1, static_cast<double>(step.step));
  const double correction2 = 1 - std::pow(step.beta2, static_cast<double>(step.step));
  return {.grad_scale = step.grad_scale,
          .keep = static_cast<float>(1 - step.lr * step.weight_decay),
          .beta1 = static_cast<float>(step.beta1),
          .rest1 = static_cast<float>(1 - step.beta1),
          .beta2 = static_cast<float>(step.beta2),
          .rest2 = static_cast<float>(1 - step.beta2),
          .eps = static_cast<float>(step.eps),
          .step_size = static_cast<float>(step.lr / correction1),
          .inverse_root_correction2 = static_cast<float>(1 / std::sqrt(correction2))};
}

TRAINYARD_MULTIVERSION void update(float* param, const float* grad, float* m, float* v, const Factors& factors,
                                   int64_t count) {
  const Factors f = factors;  // by value: the stores below cannot change it
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float g = grad[i] * f.grad_scale;
    const float first = f.beta1 * m[i] + f.rest1 * g;
    const float second = f.beta2 * v[i] + f.rest2 * g * g;
    m[i] = first;
    v[i] = second;
    param[i] =
        param[i] * f.keep - f.step_size * (first / (__builtin_sqrtf(second) * f.inverse_root_correction2 + f.eps));
  }
}

}  // namespace

void adamw_step(Tensor& param, const Tensor& grad, Tensor& m, Tensor& v, const AdamWStep& step) {
  const Factors factors = factors_of(step);
  float *const p = param.data<float>(), *const first = m.data<float>(), *const second = v.data<float>();
  parallel_for(param.count(), kElementGrain, [=, &factors, g = grad.data<float>()](int64_t begin, int64_t end) {
    update(p + begin, g + begin, first + begin, second + begin, factors, end - begin);
  });
}

}  // namespace trainyard::ops::cpu
