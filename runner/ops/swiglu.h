#pragma once

#include "tensor/tensor.h"

namespace trainyard::ops {

/// y = silu(gate) · up, silu(x) = x / (1 + exp(−x)) (Shazeer 2020). All of one shape and dtype, float32, bfloat16 or
/// float16; y may be gate or up. Throws std::invalid_argument otherwise; so does backward.
void swiglu(const Tensor& gate, const Tensor& up, Tensor& y);

/// With s = sigmoid(gate):  dgate = dy · up · s · (1 + gate · (1 − s)),  dup = dy · gate · s.
/// dgate and dup are written; they may be gate, up or dy.
void swiglu_backward(const Tensor& dy, const Tensor& gate, const Tensor& up, Tensor& dgate, Tensor& dup);

}  // namespace trainyard::ops
