#pragma once

#include "autograd/parameter.h"
#include "autograd/tape.h"

// The products of a linear layer in 8 bits, by torchao's recipes (torchao/float8/config.py): factors are cast with
// scales of their own each time, sums are float32, what goes in and comes out is of the layer's own dtype.
namespace trainyard::autograd {

/// y = x · weightᵀ, [tokens, out] in x's dtype. With a tape what its way back takes of x is cast along.
Tensor float8_linear(const Variable& x, const Parameter& weight);

/// What the way back takes of x: it in 8 bits by columns where it was cast, else itself; neither for a frozen weight.
struct Float8Kept {
  ops::Float8Matrix columns;
  Tensor x;
};
/// It is called after float8_linear().
Float8Kept kept_for_float8(const Variable& x, const Parameter& weight);

/// Its way back: dx = dy · weight, and weight.gradient() += dyᵀ · x unless it is frozen.
Tensor float8_linear_backward(const Tensor& dy, const Float8Kept& kept, Parameter& weight);

}  // namespace trainyard::autograd
