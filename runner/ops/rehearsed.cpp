#include "ops/rehearsed.h"

#include <algorithm>
#include <limits>

#include "ops/attention_slices.h"
#include "ops/column_blocks.h"
#include "tensor/dry_run.h"

namespace trainyard::ops::rehearsed {
namespace {

constexpr int64_t kFloatBytes = 4, kHalfBytes = 2;
constexpr int64_t kTile = 64;  // of cuda/attention_tiles.cuh

/// For as long as a kernel would run. Of a type that host code does not touch in a dry run: it needs no memory then.
void hold(Device device, int64_t bytes) {
  if (bytes > 0) static_cast<void>(Tensor::empty({bytes / kHalfBytes}, DType::BFloat16, device));
}

/// Of the slices of an attention by cuDNN the first, none is larger, and its matrices' bytes; none of what it is not
/// for.
struct LargestSlice {
  AttentionSlice slice{};
  int64_t matrix_bytes = 0;
};
LargestSlice largest_slice(AttentionPass pass, const AttentionShape& shape, const AttentionOptions& options) {
  const size_t memory = dry_run()->device_memory();
  const int64_t most = memory > 0 ? most_matrix_bytes(memory) : std::numeric_limits<int64_t>::max();
  const AttentionMatrices matrices = attention_matrices(pass, shape, options);
  const std::vector<AttentionSlice> slices = attention_slices(shape, matrices, most);
  if (slices.empty() || are_too_large(matrices, most)) return {};
  return {slices.front(), matrices.of(slices.front())};
}

int64_t lse_bytes(const AttentionShape& shape) {
  return shape.batch * shape.heads * shape.q_tokens * kFloatBytes;
}

int64_t own_backward_bytes(const AttentionShape& shape, const AttentionOptions& options) {
  const int64_t tiles = (shape.q_tokens + kTile - 1) / kTile;
  const int64_t diagonals =
      options.bias.defined() ? shape.batch * shape.heads * tiles * (shape.kv_tokens + kTile - 1) : 0;
  return lse_bytes(shape) + diagonals * kFloatBytes;
}

int64_t cudnn_backward_bytes(const AttentionShape& shape, const AttentionOptions& options) {
  const auto [slice, matrix_bytes] = largest_slice(AttentionPass::Backward, shape, options);
  const int64_t group = shape.heads / shape.kv_heads, vectors = slice.rows * slice.kv_heads * group * shape.head_dim;
  // Ours, and on compute capability 8.0 its own.
  const int64_t dq_sums =
      keeps_scores(AttentionPass::Backward, options) ? 0 : 2 * vectors * shape.q_tokens * kFloatBytes;
  const int64_t dk_and_dv = group == 1 ? 0 : 2 * vectors * shape.kv_tokens * kHalfBytes;  // of each query head
  const bool may_be_blind = options.key_lengths.defined() || options.document_starts.defined();
  return lse_bytes(shape) * (may_be_blind ? 2 : 1) + matrix_bytes + dq_sums + dk_and_dv;
}

/// Those of cuda/columns.cuh: `total` gets the sum of something over the rows of `x`.
void hold_column_sums(const Tensor& x, const Tensor& total) {
  if (!total.defined() || total.count() == 0) return;
  const int64_t width = total.count();
  hold(total.device(), column_blocks(x.size(0), width).count * width * kFloatBytes);
}

}  // namespace

void attention(const Tensor& q, const Tensor&, const Tensor&, const AttentionShape& shape,
               const AttentionOptions& options, Tensor&, Tensor&) {
  if (q.dtype() != DType::Float32) hold(q.device(), largest_slice(AttentionPass::Forward, shape, options).matrix_bytes);
}

void attention_backward(const Tensor& dout, const AttentionSaved&, const AttentionShape& shape,
                        const AttentionOptions& options, AttentionGradients&) {
  const int64_t own = own_backward_bytes(shape, options);
  hold(dout.device(), dout.dtype() == DType::Float32 ? own : std::max(own, cudnn_backward_bytes(shape, options)));
}

void bias_backward(const Tensor& dy, Tensor& dbias) {
  hold_column_sums(dy, dbias);
}

void float8_matmul(const Float8Matrix&, const Float8Matrix&, Tensor& c, Float8MatmulOptions) {
  hold(c.device(), kMostProductWorkspace);
}

void layer_norm_backward(const Tensor& dy, const Tensor&, const Tensor&, const RowMoments&,
                         LayerNormGradients& gradients) {
  hold_column_sums(dy, gradients.dweight);
}

void matmul(const Tensor& a, const Tensor&, Tensor& c, MatmulOptions) {
  if (a.count() == 0 || c.count() == 0) return;
  const bool goes_by_float = c.dtype() != DType::Float32 && c.dtype() != a.dtype();
  hold(c.device(), static_cast<int64_t>(kMostProductWorkspace) + (goes_by_float ? c.count() * kFloatBytes : 0));
}

void rms_norm_backward(const Tensor& dy, const Tensor&, const Tensor&, const Tensor&, RmsNormGradients& gradients) {
  hold_column_sums(dy, gradients.dweight);
}

void rms_norm_rope_backward(const Tensor& dout, const Tensor&, const Tensor&, const Tensor&, const RopePlaces&,
                            RmsNormRopeGradients& gradients) {
  hold_column_sums(dout, gradients.dweight);
}

}  // namespace trainyard::ops::rehearsed
