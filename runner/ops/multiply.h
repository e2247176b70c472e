#pragma once

#include "tensor/tensor.h"

namespace trainyard::ops {

/// y = a · b, element by element; all of one shape and dtype, float32, bfloat16 or float16; y may be a or b.
/// Throws std::invalid_argument otherwise.
void multiply(const Tensor& a, const Tensor& b, Tensor& y);

}  // namespace trainyard::ops
