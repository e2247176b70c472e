#pragma once

#include <optional>
#include <vector>

#include "autograd/parameter.h"
#include "autograd/tape.h"
#include "ops/activation.h"
#include "ops/attention.h"
#include "ops/cross_entropy.h"
#include "ops/image.h"
#include "ops/rms_norm_rope.h"

// The operations of models on variables: each computes with ops/ and records its way back on its input's tape.
namespace trainyard::autograd {

/// A frozen parameter gets no gradient, and none is computed for it.
/// Inputs of one function are on the same tape, or all on none; others throw std::invalid_argument.
/// Of inputs that differ in dtype each is cast: to the parameter's where there is one, else as PyTorch promotes types.

/// x in `dtype`, and its gradient back in x's; x itself where it is of that dtype.
Variable cast(const Variable& x, DType dtype);

Variable add(const Variable& a, const Variable& b);

/// The first `count` rows of x; x itself where it has no more.
Variable first_rows(const Variable& x, int64_t count);

/// Heads of x [tokens, heads · dim], by number and as often as they stand in `heads`: [tokens, |heads| · dim].
Variable select_heads(const Variable& x, int64_t dim, const std::vector<int64_t>& heads);

/// a · b, element by element.
Variable multiply(const Variable& a, const Variable& b);

/// x · factor.
Variable scale(const Variable& x, float factor);

/// ops/activation.h.
Variable activation(ops::Activation f, const Variable& x);

/// ops/dropout.h; x itself where the rate is 0.
Variable dropout(const Variable& x, const ops::Dropout& dropout);

/// ops/relative_bias.h: [heads, span] float32 for attention(). `tape`: as nothing before it has one.
Variable relative_bias(const Tensor& buckets, Parameter& table, Tape* tape);

/// x [tokens, in] · weightᵀ, weight [out, in] → [tokens, out].
Variable linear(const Variable& x, Parameter& weight);

/// The same + bias [out] in each row.
Variable linear(const Variable& x, Parameter& weight, Parameter& bias);

/// RMS norm over the last `weight` count of each row; x [tokens, k · size], seen as [tokens · k, size].
Variable rms_norm(const Variable& x, Parameter& weight, float eps);

struct SumAndNorm {
  Variable sum, norm;
};

/// x + residual, and the RMS norm of each of its rows; in one pass where all are of one dtype.
SumAndNorm add_rms_norm(const Variable& x, const Variable& residual, Parameter& weight, float eps);

/// Layer norm of each row of x [tokens, hidden] (ops/layer_norm.h).
Variable layer_norm(const Variable& x, Parameter& weight, Parameter& bias, float eps);

/// Rows of table [vocab, hidden] → [tokens, hidden], 0 for ids that a part of a table has not. `tape`: as nothing
/// before an embedding has one. `padding_idx`: the row of the whole table that gets no gradient from here.
Variable embedding(const Tensor& ids, Parameter& table, Tape* tape, std::optional<int64_t> padding_idx = {});

/// silu(gate) · up, all [tokens, ff].
Variable swiglu(const Variable& gate, const Variable& up);

/// Rotates the heads of x [tokens, heads · head_dim] by their positions (int32 [tokens]); half-split pairs.
Variable rope(const Variable& x, const Tensor& positions, const ops::RopeTables& tables);

/// rope() of rms_norm(), of each head by itself, as one op: weight [head_dim].
Variable rms_norm_rope(const Variable& x, Parameter& weight, float eps, const ops::RopePlaces& places);

/// ops/attention.h. q [batch · q_tokens, heads · head_dim] → the same. `bias`, of any dtype, takes the place of
/// options.bias; empty: none.
Variable attention(const Variable& q, const Variable& k, const Variable& v, const ops::AttentionShape& shape,
                   const ops::AttentionOptions& options, const Variable& bias = {});

/// A convolution of step 1 inside the edges (ops/image.h): x [pixels of `shape`, channels], weight [out, channels,
/// size, size] → [pixels of convolved(), out], + bias [out]. Backward makes the patches again instead of keeping them.
Variable convolution(const Variable& x, const ops::ImageShape& shape, Parameter& weight, Parameter& bias);

/// ops/image.h: the largest of each window; each image by channels, as a row.
Variable max_pool(const Variable& x, const ops::ImageShape& shape, int64_t size);
Variable channels_first(const Variable& x, const ops::ImageShape& shape);

/// The sum of all elements of x, float64 [1] where that is. With a tape: the gradient of sum · gradient_scale goes
/// back.
Tensor sum(const Variable& x, float gradient_scale);

/// Cross-entropy of logits [rows, classes] against targets, summed over the valid ones; gradients as below.
ops::Loss cross_entropy(const Variable& logits, const Tensor& targets, float gradient_scale);

/// Cross-entropy of the head's logits h · headᵀ against targets, summed over the valid ones; the logits never exist
/// whole. With a tape on h, gradients of loss_sum · gradient_scale are computed on the way: backward hands them on.
ops::Loss linear_cross_entropy(const Variable& h, Parameter& head, const ops::Targets& targets, float gradient_scale);

}  // namespace trainyard::autograd
