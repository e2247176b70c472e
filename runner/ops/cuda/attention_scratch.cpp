#include "ops/cuda/attention_scratch.h"

#include <algorithm>
#include <limits>

#include "tensor/dry_run.h"

namespace trainyard::ops::cuda {
namespace {

/// The first of the slices in which cuDNN computes an attention, as none is larger, and the bytes of its matrices. Both
/// are zero where cuDNN does not compute it.
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

int64_t own_backward_bytes(const AttentionShape& shape, const AttentionOptions& options) {
  const int64_t diagonals = options.bias.defined() ? diagonals_of_tiles(shape).bytes() : 0;
  return number_for_each_query(shape).bytes() + diagonals;
}

/// What cuDNN itself holds is what 9.19 says when it is asked for 8.0, 9.0 and 10.0: a matrix of 2-byte elements for
/// each head of a slice, or, where it need not be deterministic, sums of dq in float32 (on 8.0); and dk and dv of each
/// query head before those of a group are added. On an H200 it holds kBeside more.
int64_t cudnn_backward_bytes(const AttentionShape& shape, const AttentionOptions& options) {
  constexpr int64_t kElementBytes = 2, kBeside = 256;
  const auto [slice, matrix_bytes] = largest_slice(AttentionPass::Backward, shape, options);
  const int64_t dq_sums = dq_sums_of(shape, slice).bytes();  // ours, and as many of its own
  const int64_t group = shape.heads / shape.kv_heads;
  const int64_t vectors = slice.rows * slice.kv_heads * group * shape.kv_tokens * shape.head_dim;
  return number_for_each_query(shape).bytes() * (may_be_blind(options) ? 2 : 1) + matrix_bytes +
         (keeps_scores(AttentionPass::Backward, options) ? kBeside : 2 * dq_sums) +
         (group == 1 ? 0 : 2 * vectors * kElementBytes);
}

}  // namespace

/// Attention in 16 bits is taken as cuDNN's, whether that takes the shape or not: it holds more than ours.
Scratch scratch::attention(const Tensor& q, const Tensor&, const Tensor&, const AttentionShape& shape,
                           const AttentionOptions& options, Tensor&, Tensor&) {
  if (q.dtype() == DType::Float32) return {q.device()};
  return {q.device(), largest_slice(AttentionPass::Forward, shape, options).matrix_bytes};
}

Scratch scratch::attention_backward(const Tensor& dout, const AttentionSaved&, const AttentionShape& shape,
                                    const AttentionOptions& options, AttentionGradients&) {
  const int64_t own = own_backward_bytes(shape, options);
  if (dout.dtype() == DType::Float32) return {dout.device(), own};
  return {dout.device(), std::max(own, cudnn_backward_bytes(shape, options))};
}

}  // namespace trainyard::ops::cuda
