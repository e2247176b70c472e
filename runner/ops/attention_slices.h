#pragma once

#include <vector>

#include "ops/attention.h"

namespace trainyard::ops {

enum class AttentionPass : uint8_t { Forward, Backward };

/// Some rows of the batch, and some KV heads with the query heads that share them.
struct AttentionSlice {
  int64_t first_row, rows;
  int64_t first_kv_head, kv_heads;
};

/// Bytes of the tokens × tokens matrices of 2-byte elements that cuDNN's attention has in memory.
struct AttentionMatrices {
  int64_t of_kv_head = 0;              ///< for each KV head of a row, with the query heads that share it
  int64_t of_row = 0;                  ///< for each row, whatever its heads
  int64_t of_kv_head_of_all_rows = 0;  ///< for each KV head, whatever the rows
  [[nodiscard]] constexpr int64_t of(const AttentionSlice& slice) const {
    return slice.rows * (of_row + slice.kv_heads * of_kv_head) + slice.kv_heads * of_kv_head_of_all_rows;
  }
};

/// T5's bias as matrices that are added to the scores, one for each head of the slice. Where there is a bias, heads are
/// KV heads.
Shape bias_matrices_shape(const AttentionShape& shape, const AttentionSlice& slice);
/// Documents as such matrices, one for each row of the slice.
Shape document_matrices_shape(const AttentionShape& shape, const AttentionSlice& slice);

/// Whether backward has the scores' gradients of each query head in memory, from which dq is one product, in its order.
/// Without, dq is added up in float32 as the parts come; a bias's gradient needs them always.
bool keeps_scores(AttentionPass pass, const AttentionOptions& options);

/// What is added to the scores, T5's bias by heads, in backward with its gradient, or documents by rows; and the
/// scores' gradients where they are kept.
AttentionMatrices attention_matrices(AttentionPass pass, const AttentionShape& shape, const AttentionOptions& options);

/// All of the work in slices, of which the matrices take at most `most_bytes`, unless one KV head's take more: whole
/// rows, or heads of one row, row after row.
std::vector<AttentionSlice> attention_slices(const AttentionShape& shape, const AttentionMatrices& matrices,
                                             int64_t most_bytes);

/// What the matrices of one slice may take on a device with so much memory.
constexpr int64_t most_matrix_bytes(size_t device_memory) {
  return static_cast<int64_t>(device_memory / 64);
}

/// Whether one KV head of one row has more than 8 times what a slice may, an eighth of the device's memory: long rows,
/// whose attention our own kernels compute, which have no such matrices, instead of ending a run out of memory.
constexpr bool are_too_large(const AttentionMatrices& matrices, int64_t most_bytes) {
  return matrices.of({0, 1, 0, 1}) / 8 > most_bytes;
}

}  // namespace trainyard::ops
