#include <cmath>
#include <utility>

#include "ops/adamw_factors.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/simd.h"
#include "ops/elements.h"
#include "ops/stochastic_rounding.h"

namespace trainyard::ops::cpu {
namespace {

template <typename Moment>
TRAINYARD_MULTIVERSION void update(float* param, const float* grad, Moment* m, Moment* v, float grad_scale,
                                   const AdamWFactors& factors, DropoutStream stream, int64_t first_element,
                                   int64_t count) {
  const AdamWFactors f = factors;  // by value: the stores below cannot change it
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float g = grad[i] * grad_scale;
    const float first = f.beta1 * to_float(m[i]) + f.rest1 * g;
    const float second = f.beta2 * to_float(v[i]) + f.rest2 * g * g;
    const uint32_t random = sizeof(Moment) == 2 ? dropout_bits(stream, static_cast<uint32_t>(first_element + i)) : 0;
    m[i] = rounded_stochastically<Moment>(first, random);
    v[i] = rounded_stochastically<Moment>(second, random >> 16U);
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
    const DropoutStream stream = rounding_stream(each.seed, each.step);
    with_element(each.m.dtype(), [&]<typename Moment>(Moment*) {
      float* const param = each.param.data<float>();
      const float* const grad = std::as_const(each.grad).data<float>();
      Moment *const m = each.m.data<Moment>(), *const v = each.v.data<Moment>();
      parallel_for(each.param.count(), kElementGrain, [&](int64_t begin, int64_t end) {
        update(param + begin, grad + begin, m + begin, v + begin, grad_scale, factors, stream,
               each.first_element + begin, end - begin);
      });
    });
  }
}

}  // namespace trainyard::ops::cpu
