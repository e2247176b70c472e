#include "ops/attention_slices.h"

#include <algorithm>

namespace trainyard::ops {

std::vector<AttentionSlice> attention_slices(const AttentionShape& shape, int64_t most_bytes) {
  const int64_t head_bytes = shape.heads / shape.kv_heads * shape.q_tokens * shape.kv_tokens * 2;
  const int64_t fitting = std::max<int64_t>(most_bytes / std::max<int64_t>(head_bytes, 1), 1);
  const int64_t kv_heads = std::min(fitting, shape.kv_heads);
  const int64_t rows = std::clamp<int64_t>(fitting / shape.kv_heads, 1, std::max<int64_t>(shape.batch, 1));
  std::vector<AttentionSlice> slices;
  for (int64_t row = 0; row < shape.batch; row += rows)
    for (int64_t head = 0; head < shape.kv_heads; head += kv_heads)
      slices.push_back({row, std::min(rows, shape.batch - row), head, std::min(kv_heads, shape.kv_heads - head)});
  return slices;
}

}  // namespace trainyard::ops
