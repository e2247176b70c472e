#pragma once

#include "tensor/tensor.h"

namespace trainyard::ops {

/// y += bias in every row: y [rows, width], bias [width] of y's dtype.
/// Throws std::invalid_argument where shapes or dtypes do not fit; so does bias_backward.
void add_bias(Tensor& y, const Tensor& bias);

/// dbias += the sum of the rows of dy: dy [rows, width], dbias [width] of any of the ops' dtypes. Sums in float32, in
/// an order that does not depend on the number of threads.
void bias_backward(const Tensor& dy, Tensor& dbias);

}  // namespace trainyard::ops
