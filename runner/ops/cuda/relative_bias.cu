#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.cuh"
#include "ops/elements.h"

namespace trainyard::ops::cuda {
namespace {

template <typename T>
__global__ void __launch_bounds__(kThreads) relative_bias_kernel(int64_t count, int64_t span, int64_t heads,
                                                                 const int32_t* buckets, const T* table, float* bias) {
  const Stride stride = grid_stride();
  for (int64_t i = stride.first; i < count; i += stride.step)
    bias[i] = to_float(table[buckets[i % span] * heads + i / span]);
}

/// A thread an element of the table: it goes over the distances in their order.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    relative_bias_backward_kernel(int64_t count, int64_t span, int64_t heads, const int32_t* buckets,
                                  const float* dbias, T* dtable) {
  const Stride stride = grid_stride();
  for (int64_t i = stride.first; i < count; i += stride.step) {
    const int64_t row = i / heads, head = i % heads;
    float sum = 0;
    for (int64_t d = 0; d < span; ++d)
      if (buckets[d] == row) sum += dbias[head * span + d];
    dtable[i] = from_float<T>(to_float(dtable[i]) + sum);
  }
}

}  // namespace

void relative_bias(const Tensor& buckets, const Tensor& table, Tensor& bias) {
  if (bias.count() == 0) return;
  with_element(table.dtype(), [&]<typename T>(T*) {
    launch("relative_bias", bias.device(), grid_for(bias.count()), relative_bias_kernel<T>, bias.count(),
           buckets.count(), table.size(1), elements<int32_t>(buckets), elements<T>(table), elements<float>(bias));
  });
}

void relative_bias_backward(const Tensor& dbias, const Tensor& buckets, Tensor& dtable) {
  if (dtable.count() == 0) return;
  with_element(dtable.dtype(), [&]<typename T>(T*) {
    launch("relative_bias_backward", dtable.device(), grid_for(dtable.count()), relative_bias_backward_kernel<T>,
           dtable.count(), buckets.count(), dtable.size(1), elements<int32_t>(buckets), elements<float>(dbias),
           elements<T>(dtable));
  });
}

}  // namespace trainyard::ops::cuda
