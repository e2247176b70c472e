#include "ops/adamw_factors.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/simd.h"

namespace trainyard::ops::cpu {
namespace {

TRAINYARD_MULTIVERSION void update(float* param, const float* grad, float* m, float* v, const AdamWFactors& factors,
                                   int64_t count) {
  const AdamWFactors f = factors;  // by value: the stores below cannot change it
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
  const AdamWFactors factors = factors_of(step);
  float *const p = param.data<float>(), *const first = m.data<float>(), *const second = v.data<float>();
  parallel_for(param.count(), kElementGrain, [=, &factors, g = grad.data<float>()](int64_t begin, int64_t end) {
    update(p + begin, g + begin, first + begin, second + begin, factors, end - begin);
  });
}

}  // namespace trainyard::ops::cpu
