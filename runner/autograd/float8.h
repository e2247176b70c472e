#pragma once

#include "autograd/parameter.h"

// The products of a linear layer in 8 bits, by torchao's recipes (torchao/float8/config.py): factors are cast with
// scales of their own each time, sums are float32, what goes in and comes out is of the layer's own dtype.
namespace trainyard::autograd {

/// y = x · weightᵀ, [tokens, out] in x's dtype.
Tensor float8_linear(const Tensor& x, const Parameter& weight);

/// Its way back: dx = dy · weight, and weight.gradient() += dyᵀ · x unless it is frozen.
Tensor float8_linear_backward(const Tensor& dy, const Tensor& x, Parameter& weight);

}  // namespace trainyard::autograd
