#pragma once

#include "tensor/tensor.h"

namespace trainyard::ops {

/// The sum of all elements, in double and in an order that does not depend on the number of threads: float64 [1] where
/// x is, so nothing is waited for. Any of the ops' dtypes; throws std::invalid_argument otherwise, so does fill.
Tensor sum(const Tensor& x);

/// Every element of x = value, rounded to its dtype.
void fill(Tensor& x, float value);

}  // namespace trainyard::ops
