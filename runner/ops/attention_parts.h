#pragma once

#include "ops/attention.h"

namespace trainyard::ops {

/// Joins what queries got from some of their keys to what they had from others (the online softmax of FlashAttention,
/// Dao 2022; ring attention, Liu 2023):
///   l = log(e^lse + e^part_lse),   out = out · e^(lse − l) + part · e^(part_lse − l),   lse = l
///   part      [batch * q_tokens, heads * head_dim], any dtype of the ops, and part_lse: as attention() wrote them
///   out       float32, of part's shape, and lse [batch, heads, q_tokens] float32: changed
/// Where nothing was seen yet, lse is −infinity. Throws std::invalid_argument where shapes or dtypes do not fit.
void merge_attention(const Tensor& part, const Tensor& part_lse, const AttentionShape& shape, Tensor& out, Tensor& lse);

}  // namespace trainyard::ops
