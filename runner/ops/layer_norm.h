#pragma once

#include "tensor/tensor.h"

namespace trainyard::ops {

/// What backward needs of each row; [rows] float32.
struct RowMoments {
  Tensor mean, rstd;
};

/// y = (x − mean) · rstd · weight + bias, mean and variance over a row, rstd = 1/√(variance + eps) (Ba et al. 2016).
///   x, y  [rows, hidden]      weight, bias  [hidden]; all of one dtype; the row's arithmetic is float32
/// Throws std::invalid_argument where shapes or dtypes do not fit; so does backward.
void layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, float eps, Tensor& y, RowMoments moments);

struct LayerNormGradients {
  Tensor dx;              ///< like x: written
  Tensor dweight, dbias;  ///< [hidden], any of the ops' dtypes: added to
};

/// With n = (x − mean) · rstd and g = dy · weight:  dx = rstd · (g − mean(g) − n · mean(g · n)),  dweight += Σ dy · n,
/// dbias += Σ dy. The same bits for any number of threads.
void layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const RowMoments& moments,
                         LayerNormGradients gradients);

}  // namespace trainyard::ops
