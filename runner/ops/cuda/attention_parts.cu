#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.cuh"
#include "ops/elements.h"
#include "ops/merge_weights.h"

namespace trainyard::ops::cuda {
namespace {

/// A thread a head of a query.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    merge_kernel(int64_t count, AttentionShape shape, const T* part, const float* part_lse, float* out, float* lse) {
  const Stride stride = grid_stride();
  for (int64_t i = stride.first; i < count; i += stride.step) {
    const int64_t row = i / shape.heads, head = i % shape.heads;
    const int64_t at = (row / shape.q_tokens * shape.heads + head) * shape.q_tokens + row % shape.q_tokens;
    const MergeWeights weights = merge_weights(
        lse[at], part_lse[at], [](float x) { return expf(x); }, [](float x) { return logf(x); });
    for (int64_t k = i * shape.head_dim; k < (i + 1) * shape.head_dim; ++k)
      out[k] = out[k] * weights.held + to_float(part[k]) * weights.part;
    lse[at] = weights.lse;
  }
}

}  // namespace

void merge_attention(const Tensor& part, const Tensor& part_lse, const AttentionShape& shape, Tensor& out,
                     Tensor& lse) {
  const int64_t count = shape.batch * shape.q_tokens * shape.heads;
  if (count == 0) return;
  with_element(part.dtype(), [&]<typename T>(T*) {
    launch("merge_attention", part.device(), grid_for(count), merge_kernel<T>, count, shape, elements<T>(part),
           elements<float>(part_lse), elements<float>(out), elements<float>(lse));
  });
}

}  // namespace trainyard::ops::cuda
