#include "ops/attention_slices.h"

#include <algorithm>

#include "ops/determinism.h"

namespace trainyard::ops {

bool keeps_scores(AttentionPass pass, const AttentionOptions& options) {
  return pass == AttentionPass::Backward && (is_deterministic() || options.bias.defined());
}

AttentionMatrices attention_matrices(AttentionPass pass, const AttentionShape& shape, const AttentionOptions& options) {
  const int64_t matrix = shape.q_tokens * shape.kv_tokens * 2;
  AttentionMatrices kept;
  if (options.document_starts.defined()) kept.of_row = matrix;
  if (options.bias.defined()) kept.of_kv_head_of_all_rows = pass == AttentionPass::Backward ? 2 * matrix : matrix;
  if (keeps_scores(pass, options)) kept.of_kv_head = shape.heads / shape.kv_heads * matrix;
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
