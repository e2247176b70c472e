#pragma once

#include <span>

#include "tensor/tensor.h"

namespace trainyard::ops {

/// One tensor of an update, or rows of it, and its moments: of one shape and on one device, float32. Both moments may
/// be bfloat16, computed in float32 and rounded stochastically: up with a probability that grows from 0 to 1 between
/// two neighbours. What is rounded how depends on seed, t and the element alone, and so on no division of rows.
struct AdamWTensor {
  Tensor param, grad, m, v;
  double weight_decay = 0;
  int64_t step = 1;           ///< t, from 1: the bias corrections 1 − beta^t are taken in double
  uint64_t seed = 0;          ///< of the rounding; another for each tensor
  int64_t first_element = 0;  ///< of the tensor, where these are rows of it
};

struct AdamWStep {
  double lr = 0;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  /// Float32 [1] where the tensors are: multiplies the gradients first, as the clip factor does; NaN: nothing is
  /// changed. Undefined: 1.
  Tensor grad_scale = {};
};

/// AdamW (Loshchilov and Hutter 2019) of all tensors in one pass, in PyTorch's order: with g = grad · grad_scale
///   param ← param · (1 − lr · weight_decay);  m ← beta1 · m + (1 − beta1) · g;  v ← beta2 · v + (1 − beta2) · g²;
///   param ← param − lr · (m / (1 − beta1^t)) / (√(v / (1 − beta2^t)) + eps)
/// Waits for nothing. Throws std::invalid_argument where shapes or dtypes do not fit, or for a step below 1.
void adamw_step(std::span<AdamWTensor> tensors, const AdamWStep& step);

}  // namespace trainyard::ops
