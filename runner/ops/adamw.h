#pragma once

#include "tensor/tensor.h"

namespace trainyard::ops {

struct AdamWStep {
  double lr = 0;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0;
  int64_t step = 1;      ///< t, from 1: the bias corrections 1 − beta^t are taken in double
  float grad_scale = 1;  ///< multiplies the gradient first: the clip factor
};

/// AdamW (Loshchilov and Hutter 2019) in one pass, in PyTorch's order: with g = grad · grad_scale
///   param ← param · (1 − lr · weight_decay);  m ← beta1 · m + (1 − beta1) · g;  v ← beta2 · v + (1 − beta2) · g²;
///   param ← param − lr · (m / (1 − beta1^t)) / (√(v / (1 − beta2^t)) + eps)
/// param, grad, m, v: float32, of one count. Throws std::invalid_argument otherwise, or for a step below 1.
void adamw_step(Tensor& param, const Tensor& grad, Tensor& m, Tensor& v, const AdamWStep& step);

}  // namespace trainyard::ops
