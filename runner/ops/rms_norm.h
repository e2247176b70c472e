#pragma once

#include "tensor/tensor.h"

namespace trainyard::ops {

// RMSNorm as in Hugging Face's Llama and Qwen3 (Zhang and Sennrich 2019): n = x · rstd in float32, cast to x's dtype,
// then y = weight · n. Every row is normalised by itself, so the norm of each head of q and k is the same op on
// x viewed as [tokens * heads, head_dim].

/// y = weight · x · rstd,  rstd = 1 / sqrt(mean(x²) + eps).
///   x, y  [tokens, hidden] float32, bfloat16 or float16; y may be x      weight  [hidden], the same dtype
///   rstd  [tokens] float32, kept for backward
/// Throws std::invalid_argument where shapes or dtypes do not fit; so do the others.
void rms_norm(const Tensor& x, const Tensor& weight, float eps, Tensor& y, Tensor& rstd);

/// sum = x + residual, y = rms_norm(sum), in one pass. `sum` may be `x` or `residual`.
void add_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& weight, float eps, Tensor& sum, Tensor& y,
                  Tensor& rstd);

struct RmsNormGradients {
  Tensor dx;       ///< [tokens, hidden], x's dtype; may be dy
  Tensor dweight;  ///< [hidden], float32, bfloat16 or float16: added to; undefined: none
  bool accumulate_dx =
      false;  ///< dx += instead of dx =: adds the gradient that comes past the norm on the residual path
};

/// With g = dy · weight and n = x · rstd:  dx = rstd · (g − n · mean(g · n)),  dweight += Σ over tokens of dy · n.
/// x is what was normalised (`sum` of add_rms_norm). The sum over tokens is the same for any number of threads.
void rms_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                       RmsNormGradients gradients);

}  // namespace trainyard::ops
