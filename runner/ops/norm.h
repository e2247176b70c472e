#pragma once

#include "tensor/tensor.h"

namespace trainyard::ops {

/// Σ x² of a float32, bfloat16 or float16 tensor, added up in double block by block: the same for any number of
/// threads. NaN or infinite where an element is. Float64 [1] on x's device, where nothing is waited for. Throws
/// std::invalid_argument for another dtype; so does all_finite.
Tensor sum_of_squares(const Tensor& x);

/// True if no element is NaN or infinite.
bool all_finite(const Tensor& x);

}  // namespace trainyard::ops
