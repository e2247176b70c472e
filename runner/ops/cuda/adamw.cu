#include "ops/adamw_factors.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/tensor_list.cuh"

namespace trainyard::ops::cuda {
namespace {

struct Entry : ListedTensor {
  AdamWFactors factors;
  float* param;
  const float* grad;
  float *m, *v;
};

__global__ void __launch_bounds__(kThreads) adamw_kernel(int count, const Entry* entries, const float* grad_scale) {
  const float scale = grad_scale ? *grad_scale : 1;
  if (scale != scale) return;
  const Entry& entry = entry_of(entries, count, blockIdx.x);
  const AdamWFactors f = entry.factors;
  for_chunk<kWide<float>>(entry, blockIdx.x, [&](auto width, int64_t i) {
    constexpr int kCount = decltype(width)::value;
    auto p = load<kCount>(entry.param, i), first = load<kCount>(entry.m, i), second = load<kCount>(entry.v, i);
    const auto gradient = load<kCount>(entry.grad, i);
    for (int k = 0; k < kCount; ++k) {
      const float g = gradient.values[k] * scale;
      first.values[k] = f.beta1 * first.values[k] + f.rest1 * g;
      second.values[k] = f.beta2 * second.values[k] + f.rest2 * g * g;
      const float root = sqrtf(second.values[k]) * f.inverse_root_correction2 + f.eps;
      p.values[k] = p.values[k] * f.keep - f.step_size * (first.values[k] / root);
    }
    store<kCount>(entry.param, i, p);
    store<kCount>(entry.m, i, first);
    store<kCount>(entry.v, i, second);
  });
}

}  // namespace

void adamw_step(std::span<AdamWTensor> tensors, const AdamWStep& step) {
  std::vector<Entry> entries;
  for (AdamWTensor& each : tensors) {
    Entry entry{{.count = each.param.count()}, factors_of(step, each),
                elements<float>(each.param),   elements<float>(std::as_const(each.grad)),
                elements<float>(each.m),       elements<float>(each.v)};
    entry.is_wide = are_wide<kWide<float>>(entry.param, entry.grad, entry.m, entry.v);
    entries.push_back(entry);
  }
  const Device device = tensors.front().param.device();
  const TensorList<Entry> list(std::move(entries), device);
  if (list.chunks == 0) return;
  launch("adamw_step", device, {.blocks = list.chunks}, adamw_kernel, list.count, list.entries(),
         step.grad_scale.defined() ? elements<float>(step.grad_scale) : nullptr);
}

}  // namespace trainyard::ops::cuda
