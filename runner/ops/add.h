#pragma once

#include "tensor/tensor.h"

namespace trainyard::ops {

/// out = a + b. One shape and dtype, float32, bfloat16 or float16; out may be a or b.
/// Throws std::invalid_argument otherwise; so does add_to.
void add(const Tensor& a, const Tensor& b, Tensor& out);

/// total += addend, of the same count. Each float32, bfloat16 or float16 by itself: a float32 total of bfloat16
/// gradients.
void add_to(Tensor& total, const Tensor& addend);

}  // namespace trainyard::ops
