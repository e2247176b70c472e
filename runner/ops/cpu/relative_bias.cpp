#include "ops/relative_bias.h"

#include "ops/cpu/kernels.h"
#include "ops/cpu/simd.h"
#include "ops/elements.h"

namespace trainyard::ops::cpu {

// A few thousand elements a pass: not worth a second thread.
void relative_bias(const Tensor& buckets, const Tensor& table, Tensor& bias) {
  const int64_t heads = table.size(1), span = buckets.count();
  const int32_t* const bucket = buckets.data<int32_t>();
  with_element(table.dtype(), [&]<typename T>(T*) {
    const T* const from = table.data<T>();
    float* const to = bias.data<float>();
    for (int64_t head = 0; head < heads; ++head)
      for (int64_t d = 0; d < span; ++d) to[head * span + d] = to_float(from[bucket[d] * heads + head]);
  });
}

void relative_bias_backward(const Tensor& dbias, const Tensor& buckets, Tensor& dtable) {
  const int64_t heads = dtable.size(1), span = buckets.count(), rows = dtable.size(0);
  const int32_t* const bucket = buckets.data<int32_t>();
  const float* const from = dbias.data<float>();
  // Summed in float32 first: bfloat16 would lose hundreds of small addends one by one.
  Tensor sums = Tensor::zeros({rows, heads}, DType::Float32);
  float* const total = sums.data<float>();
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t d = 0; d < span; ++d) total[bucket[d] * heads + head] += from[head * span + d];
  with_element(dtable.dtype(), [&]<typename T>(T*) {
    T* const to = dtable.data<T>();
    for (int64_t i = 0; i < rows * heads; ++i) to[i] = from_float<T>(to_float(to[i]) + total[i]);
  });
}

}  // namespace trainyard::ops::cpu
