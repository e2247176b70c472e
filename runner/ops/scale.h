#pragma once

#include "tensor/tensor.h"

namespace trainyard::ops {

/// x *= factor; float32, bfloat16 or float16. Throws std::invalid_argument for another dtype.
void scale(Tensor& x, float factor);

/// x = 0, any dtype.
void set_zero(Tensor& x);

}  // namespace trainyard::ops
