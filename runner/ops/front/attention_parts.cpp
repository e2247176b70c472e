#include "ops/attention_parts.h"

#include "metrics/trace.h"
#include "ops/check.h"
#include "ops/cost.h"
#include "ops/kernels.h"

namespace trainyard::ops {

void merge_attention(const Tensor& part, const Tensor& part_lse, const AttentionShape& shape, Tensor& out,
                     Tensor& lse) {
  const metrics::TraceSpan span("merge_attention", "op");
  const Shape outputs{shape.batch * shape.q_tokens, shape.heads * shape.head_dim};
  const Shape sums{shape.batch, shape.heads, shape.q_tokens};
  require_floating("merge_attention", "part", part);
  require("merge_attention", "part", part, outputs, part.dtype());
  require("merge_attention", "part_lse", part_lse, sums, DType::Float32);
  require("merge_attention", "out", out, outputs, DType::Float32);
  require("merge_attention", "lse", lse, sums, DType::Float32);
  tell_cost({&part, &part_lse, &out, &lse});
  kernel("merge_attention", &Kernels::merge_attention, {&part, &part_lse, &out, &lse})(part, part_lse, shape, out, lse);
}

}  // namespace trainyard::ops
