#pragma once

#include "tensor/tensor.h"

namespace trainyard::ops {

/// What each head adds to a score by the distance of key and query: bias[h, d] = table[buckets[d], h].
///   buckets [span] int32      table [buckets, heads], float32, bfloat16 or float16      bias [heads, span] float32
/// (AttentionOptions::bias takes it.) Throws std::invalid_argument where shapes or dtypes do not fit; so does backward.
void relative_bias(const Tensor& buckets, const Tensor& table, Tensor& bias);

/// dtable[buckets[d], h] += dbias[h, d], in the order of d.
void relative_bias_backward(const Tensor& dbias, const Tensor& buckets, Tensor& dtable);

}  // namespace trainyard::ops
