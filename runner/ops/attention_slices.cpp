#include "ops/attention_slices.h"

#include <algorithm>

#include "ops/determinism.h"

namespace trainyard::ops {

Shape bias_matrices_shape(const AttentionShape& shape, const AttentionSlice& slice) {
  return {1, slice.kv_heads, shape.q_tokens, shape.kv_tokens};
}

Shape document_matrices_shape(const AttentionShape& shape, const AttentionSlice& slice) {
  return {slice.rows, 1, shape.q_tokens, shape.kv_tokens};
}

bool keeps_scores(AttentionPass pass, const AttentionOptions& options) {
  return pass == AttentionPass::Backward && (is_deterministic() || options.bias.defined());
}

AttentionMatrices attention_matrices(AttentionPass pass, const AttentionShape& shape, const AttentionOptions& options) {
  constexpr AttentionSlice kOneHead{.first_row = 0, .rows = 1, .first_kv_head = 0, .kv_heads = 1};
  constexpr int64_t kElementBytes = 2;
  const int64_t documents = count_of(document_matrices_shape(shape, kOneHead)) * kElementBytes;
  const int64_t bias = count_of(bias_matrices_shape(shape, kOneHead)) * kElementBytes;
  const int64_t scores = shape.heads / shape.kv_heads * shape.q_tokens * shape.kv_tokens * kElementBytes;
  AttentionMatrices kept;
  if (options.document_starts.defined()) kept.of_row = documents;
  if (options.bias.defined()) kept.of_kv_head_of_all_rows = pass == AttentionPass::Backward ? 2 * bias : bias;
  if (keeps_scores(pass, options)) kept.of_kv_head = scores;
  return kept;
}

std::vector<AttentionSlice> attention_slices(const AttentionShape& shape, const AttentionMatrices& matrices,
                                             int64_t most_bytes) {
  const int64_t of_no_row = matrices.of({0, 0, 0, shape.kv_heads});
  const int64_t row_bytes = matrices.of({0, 1, 0, shape.kv_heads}) - of_no_row;
  const int64_t head_bytes = matrices.of_kv_head + matrices.of_kv_head_of_all_rows;
  int64_t rows = 1, kv_heads = shape.kv_heads;
  if (of_no_row + row_bytes <= most_bytes)
    rows = row_bytes == 0 ? shape.batch : std::min(shape.batch, (most_bytes - of_no_row) / row_bytes);
  else if (head_bytes > 0)
    kv_heads = std::clamp<int64_t>((most_bytes - matrices.of_row) / head_bytes, 1, kv_heads);
  std::vector<AttentionSlice> slices;
  for (int64_t row = 0; row < shape.batch; row += rows)
    for (int64_t head = 0; head < shape.kv_heads; head += kv_heads)
      slices.push_back({row, std::min(rows, shape.batch - row), head, std::min(kv_heads, shape.kv_heads - head)});
  return slices;
}

}  // namespace trainyard::ops
