#pragma once

#include "ops/cuda/attention_scratch.h"

// Attention by cuDNN's fused kernels on the tensor cores, and what those want to have made for them.
namespace trainyard::ops::cuda {

/// It does what cuda::attention and cuda::attention_backward do, in slices of `most_bytes`, 0: a 64th of the device's
/// memory. False, with nothing done, where cuDNN is not on this machine or does not compute this.
bool attention_by_cudnn(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionShape& shape,
                        const AttentionOptions& options, Tensor& out, Tensor& lse, int64_t most_bytes = 0);
bool attention_backward_by_cudnn(const Tensor& dout, const AttentionSaved& saved, const AttentionShape& shape,
                                 const AttentionOptions& options, AttentionGradients& gradients,
                                 int64_t most_bytes = 0);

/// options.bias as matrices [1, the slice's heads, q_tokens, kv_tokens] of `dtype`.
Tensor bias_matrices(const AttentionShape& shape, const AttentionOptions& options, const AttentionSlice& slice,
                     DType dtype);

/// Its way back for the slice's heads: sums along the diagonals of `dmatrices`, in the order of the queries, written,
/// or added where rows before these have written.
void bias_gradient(const AttentionShape& shape, const AttentionSlice& slice, const Tensor& dmatrices, Tensor& dbias);

/// options.document_starts as matrices [the slice's rows, 1, q_tokens, kv_tokens] of `dtype` that are added to the
/// scores: 0, and what makes a probability 0 for the keys of other documents.
Tensor document_matrices(const AttentionShape& shape, const AttentionOptions& options, const AttentionSlice& slice,
                         DType dtype);

/// int32 [batch]: as many queries as a row has, and options.key_lengths, but 1 at least.
struct Lengths {
  Tensor queries, keys;
};
Lengths lengths_of(const AttentionShape& shape, const AttentionOptions& options);

/// What ops/attention.h promises of queries that see no key: out = 0 and lse = −infinity.
void settle_blind_queries(const AttentionShape& shape, const AttentionOptions& options, Tensor& out, Tensor& lse);

/// lse with +infinity for −infinity: exp(score − lse) is then 0 for queries that see no key, and so are their
/// gradients.
Tensor lse_without_blind_queries(const Tensor& lse);

/// dk = dv = 0 past options.key_lengths.
void clear_hidden_keys(const AttentionShape& shape, const AttentionOptions& options, Tensor& dk, Tensor& dv);

}  // namespace trainyard::ops::cuda
