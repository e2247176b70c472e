#pragma once

#include "ops/attention_slices.h"
#include "ops/cuda/scratch.h"

// What attention holds while it runs, by our own kernels or by cuDNN's. The matrices that cuDNN's read are in
// ops/attention_slices.h, as the slices depend on them.
namespace trainyard::ops::cuda {

/// Queries, or keys, that a tile of our own kernels has.
constexpr int kTile = 64;

constexpr int64_t tiles_of(int64_t tokens) {
  return (tokens + kTile - 1) / kTile;
}

/// A number for each query of each head, as lse has: Σ dout · out in backward.
inline ScratchTensor number_for_each_query(const AttentionShape& shape) {
  return {{shape.batch, shape.heads, shape.q_tokens}, DType::Float32};
}

/// The bias's gradient in our own backward, along the diagonals of each tile of queries.
inline ScratchTensor diagonals_of_tiles(const AttentionShape& shape) {
  return {{shape.batch * shape.heads, tiles_of(shape.q_tokens), shape.kv_tokens + kTile - 1}, DType::Float32};
}

/// Sums of dq, to which cuDNN's backward adds where it does not keep the scores' gradients.
inline ScratchTensor dq_sums_of(const AttentionShape& shape, const AttentionSlice& slice) {
  const int64_t heads = slice.kv_heads * (shape.heads / shape.kv_heads);
  return {{slice.rows * heads * shape.q_tokens, shape.head_dim}, DType::Float32};
}

/// Whether some queries may see no key. cuDNN's backward then takes a copy of lse that is settled for them.
inline bool may_be_blind(const AttentionOptions& options) {
  return options.key_lengths.defined() || options.document_starts.defined();
}

}  // namespace trainyard::ops::cuda
