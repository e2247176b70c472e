#include "ops/attention_parts.h"

#include <cmath>

#include "ops/cpu/kernels.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/simd.h"
#include "ops/elements.h"
#include "ops/merge_weights.h"

namespace trainyard::ops::cpu {
namespace {

template <typename T>
TRAINYARD_MULTIVERSION void add_weighted(const T* part, float* out, int64_t count, float held, float weight) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) out[i] = out[i] * held + to_float(part[i]) * weight;
}

}  // namespace

void merge_attention(const Tensor& part, const Tensor& part_lse, const AttentionShape& shape, Tensor& out,
                     Tensor& lse) {
  const int64_t heads = shape.heads, tokens = shape.q_tokens, dim = shape.head_dim;
  with_element(part.dtype(), [&]<typename T>(T*) {
    parallel_for(shape.batch * tokens, rows_grain(heads * dim),
                 [&, from = part.data<T>(), from_lse = part_lse.data<float>(), to = out.data<float>(),
                  to_lse = lse.data<float>()](int64_t begin, int64_t end) {
                   for (int64_t row = begin; row < end; ++row)
                     for (int64_t head = 0; head < heads; ++head) {
                       const int64_t at = (row / tokens * heads + head) * tokens + row % tokens;
                       const MergeWeights weights =
                           merge_weights(to_lse[at], from_lse[at], [](float x) { return std::exp(x); },
                                         [](float x) { return std::log(x); });
                       add_weighted(from + (row * heads + head) * dim, to + (row * heads + head) * dim, dim,
                                    weights.held, weights.part);
                       to_lse[at] = weights.lse;
                     }
                 });
  });
}

}  // namespace trainyard::ops::cpu
