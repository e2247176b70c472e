#pragma once

#include "ops/cpu/kernels.h"

// In a dry run for a device, what in cuda/ holds memory of its own while it runs: nothing is computed, and as much is
// held, as exactly as shapes tell it. What a library asks for and only a device knows is taken as what it may ask for
// at most. Kernels that hold a number or a head's vector for each of some tens of blocks are not here.
namespace trainyard::ops {

/// What cuBLASLt may ask for.
constexpr size_t kMostProductWorkspace = size_t{32} << 20;

namespace rehearsed {

/// cuDNN's, for the 16-bit types, whether it would take the shape or not: it holds more than our own. Backward has a
/// matrix of 2-byte elements for each head of a slice, or sums of dq in float32 where it need not be deterministic, and
/// dk and dv of each query head before those of a group are added: so says cuDNN 9.19, asked for 8.0, 9.0 and 10.0.
void attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionShape& shape,
               const AttentionOptions& options, Tensor& out, Tensor& lse);
void attention_backward(const Tensor& dout, const AttentionSaved& saved, const AttentionShape& shape,
                        const AttentionOptions& options, AttentionGradients& gradients);
void bias_backward(const Tensor& dy, Tensor& dbias);
/// Where cuBLASLt has a kernel for it.
void float8_matmul(const Float8Matrix& a, const Float8Matrix& b, Tensor& c, Float8MatmulOptions options);
void layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const RowMoments& moments,
                         LayerNormGradients& gradients);
void matmul(const Tensor& a, const Tensor& b, Tensor& c, MatmulOptions options);
void rms_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                       RmsNormGradients& gradients);
void rms_norm_rope_backward(const Tensor& dout, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                            const RopePlaces& places, RmsNormRopeGradients& gradients);

}  // namespace rehearsed
}  // namespace trainyard::ops
