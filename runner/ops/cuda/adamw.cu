#include "ops/adamw_factors.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.cuh"

namespace trainyard::ops::cuda {
namespace {

template <int kCount>
__global__ void __launch_bounds__(kThreads)
    adamw_kernel(int64_t packs, AdamWFactors f, float* param, const float* grad, float* m, float* v) {
  const Stride stride = grid_stride();
  for (int64_t i = stride.first; i < packs; i += stride.step) {
    auto p = load<kCount>(param, i), first = load<kCount>(m, i), second = load<kCount>(v, i);
    const auto gradient = load<kCount>(grad, i);
    for (int k = 0; k < kCount; ++k) {
      const float g = gradient.values[k] * f.grad_scale;
      first.values[k] = f.beta1 * first.values[k] + f.rest1 * g;
      second.values[k] = f.beta2 * second.values[k] + f.rest2 * g * g;
      const float root = sqrtf(second.values[k]) * f.inverse_root_correction2 + f.eps;
      p.values[k] = p.values[k] * f.keep - f.step_size * (first.values[k] / root);
    }
    store<kCount>(param, i, p);
    store<kCount>(m, i, first);
    store<kCount>(v, i, second);
  }
}

}  // namespace

void adamw_step(Tensor& param, const Tensor& grad, Tensor& m, Tensor& v, const AdamWStep& step) {
  if (param.count() == 0) return;
  float *const p = elements<float>(param), *const first = elements<float>(m), *const second = elements<float>(v);
  const float* const g = elements<float>(grad);
  with_packs(
      param.count() % kWide<float> == 0,
      [&](auto width) {
        const int64_t packs = param.count() / width.value;
        launch("adamw_step", param.device(), grid_for(packs), adamw_kernel<width.value>, packs, factors_of(step), p, g,
               first, second);
      },
      p, g, first, second);
}

}  // namespace trainyard::ops::cuda
