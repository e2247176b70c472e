#pragma once

#include "ops/rope.h"

namespace trainyard::ops {

/// Where heads are turned to: rope.h's positions, int32 [tokens], and its tables.
struct RopePlaces {
  Tensor positions;
  RopeTables tables;
};

/// The norm of each head of q or k and then its rotation, as Qwen3 has them: rms_norm.h and rope.h in one pass, rounded
/// in between where they are.
///   x, out  [tokens, heads * head_dim] float32, bfloat16 or float16; out may be x
///   weight  [head_dim], the same dtype      rstd  [tokens * heads] float32, kept for backward
/// head_dim is twice the tables' width. Throws std::invalid_argument where shapes or dtypes do not fit or a position
/// lies outside the tables; so does the way back.
void rms_norm_rope(const Tensor& x, const Tensor& weight, float eps, const RopePlaces& places, Tensor& out,
                   Tensor& rstd);

struct RmsNormRopeGradients {
  Tensor dx;       ///< like x; may be dout
  Tensor dweight;  ///< [head_dim], float32, bfloat16 or float16: added to; undefined: none
};

/// dx, and dweight += its sum over all heads, which is the same for any number of threads.
void rms_norm_rope_backward(const Tensor& dout, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                            const RopePlaces& places, RmsNormRopeGradients gradients);

}  // namespace trainyard::ops
