#pragma once

#include <span>
#include <string_view>

#include "tensor/tensor.h"

namespace trainyard::ops {

/// cos and sin of position · inv_freq, each [positions, head_dim / 2] float32.
struct RopeTables {
  Tensor cos, sin;
};

/// Tables for positions 0 to positions − 1. `inv_freq` has head_dim / 2 values. The angle is the float32 product that
/// transformers takes: angles in double would be nearer the truth and farther from every published model.
RopeTables rope_tables(int64_t positions, std::span<const float> inv_freq);

/// Throws std::invalid_argument, in the name of `op`, where heads of x cannot be turned so: rope()'s checks.
void require_rotation(std::string_view op, const Tensor& x, const Tensor& positions, const RopeTables& tables);

/// Backward is the inverse rotation: the matrix is orthogonal.
enum class Rotation : uint8_t { Forward, Inverse };

/// Rotates each head of each token, Hugging Face's halves (not neighbours): with half = head_dim / 2, for i < half
///   out[i] = x[i] · cos − x[i + half] · sin,   out[i + half] = x[i + half] · cos + x[i] · sin   at the token's
///   position. x, out     [tokens, heads * head_dim] float32, bfloat16 or float16; out may be x positions  [tokens]
///   int32, each below the tables' number of positions
/// head_dim is twice the tables' width and divides x's. For bfloat16 cos and sin are rounded to it, as transformers
/// does. Throws std::invalid_argument where shapes or dtypes do not fit or a position lies outside the tables.
void rope(const Tensor& x, const Tensor& positions, const RopeTables& tables, Rotation rotation, Tensor& out);

}  // namespace trainyard::ops
