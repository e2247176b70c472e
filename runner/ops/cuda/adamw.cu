#include "ops/adamw_factors.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/tensor_list.cuh"
#include "ops/stochastic_rounding.h"

namespace trainyard::ops::cuda {
namespace {

template <typename Moment>
struct Entry : ListedTensor {
  AdamWFactors factors;
  DropoutStream stream;
  int64_t first_element;
  float* param;
  const float* grad;
  Moment *m, *v;
};

/// Where a product is added, the rounding in between is left out by fmaf(): of itself the compiler does so in some
/// places of a pack and not in others, and an element's bits would be another's where a shard begins elsewhere.
template <typename Moment>
__global__ void __launch_bounds__(kThreads)
    adamw_kernel(int count, const Entry<Moment>* entries, const float* grad_scale) {
  const float scale = grad_scale ? *grad_scale : 1;
  if (scale != scale) return;
  const Entry<Moment> entry = entry_of(entries, count, blockIdx.x);  // whose addresses the stores below cannot change
  const AdamWFactors f = entry.factors;
  for_chunk<kWide<float>>(entry, blockIdx.x, [&](auto width, int64_t i) {
    constexpr int kCount = decltype(width)::value;
    auto p = load<kCount>(entry.param, i);
    auto m = load<kCount>(entry.m, i), v = load<kCount>(entry.v, i);
    const auto gradient = load<kCount>(entry.grad, i);
    for (int k = 0; k < kCount; ++k) {
      const float g = gradient.values[k] * scale;
      const float first = fmaf(f.beta1, to_float(m.values[k]), f.rest1 * g);
      const float second = fmaf(f.beta2, to_float(v.values[k]), f.rest2 * g * g);
      const auto element = static_cast<uint32_t>(entry.first_element + i * kCount + k);
      const uint32_t random = sizeof(Moment) == 2 ? dropout_bits(entry.stream, element) : 0;
      m.values[k] = rounded_stochastically<Moment>(first, random);
      v.values[k] = rounded_stochastically<Moment>(second, random >> 16U);
      const float root = fmaf(sqrtf(second), f.inverse_root_correction2, f.eps);
      p.values[k] = fmaf(-f.step_size, first / root, p.values[k] * f.keep);
    }
    store<kCount>(entry.param, i, p);
    store<kCount>(entry.m, i, m);
    store<kCount>(entry.v, i, v);
  });
}

template <typename Moment>
void step_all(std::span<AdamWTensor> tensors, const AdamWStep& step) {
  std::vector<Entry<Moment>> entries;
  for (AdamWTensor& each : tensors) {
    Entry<Moment> entry{{.count = each.param.count()},
                        factors_of(step, each),
                        rounding_stream(each.seed, each.step),
                        each.first_element,
                        elements<float>(each.param),
                        elements<float>(std::as_const(each.grad)),
                        elements<Moment>(each.m),
                        elements<Moment>(each.v)};
    entry.is_wide = are_wide<kWide<float>>(entry.param, entry.grad, entry.m, entry.v);
    entries.push_back(entry);
  }
  const Device device = tensors.front().param.device();
  const TensorList<Entry<Moment>> list(std::move(entries), device);
  if (list.chunks == 0) return;
  launch("adamw_step", device, {.blocks = list.chunks}, adamw_kernel<Moment>, list.count, list.entries(),
         step.grad_scale.defined() ? elements<float>(step.grad_scale) : nullptr);
}

}  // namespace

void adamw_step(std::span<AdamWTensor> tensors, const AdamWStep& step) {
  tensors.front().m.dtype() == DType::BFloat16 ? step_all<BFloat16>(tensors, step) : step_all<float>(tensors, step);
}

}  // namespace trainyard::ops::cuda
