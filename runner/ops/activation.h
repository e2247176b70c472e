#pragma once

#include "tensor/tensor.h"

namespace trainyard::ops {

enum class Activation {
  Relu,      ///< max(x, 0); its derivative at 0 is 0
  Gelu,      ///< x/2 · (1 + erf(x/√2)), Hendrycks & Gimpel 2016: PyTorch's nn.GELU
  GeluTanh,  ///< x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))); Hugging Face's gelu_new
};

/// y = f(x), element by element; both of one shape and dtype, float32, bfloat16 or float16; y may be x.
/// Throws std::invalid_argument otherwise; so does backward.
void activation(Activation f, const Tensor& x, Tensor& y);

/// dx = dy · f'(x), written; dx may be dy or x.
void activation_backward(Activation f, const Tensor& dy, const Tensor& x, Tensor& dx);

}  // namespace trainyard::ops
