#pragma once

#include <cstddef>

#include "tensor/tensor.h"

namespace trainyard {

/// Converts `count` elements of a floating-point type into another that is no wider than float32, by way of float32,
/// rounding to nearest even; what is too large for one of 8 bits becomes what PyTorch makes of it (tensor/float8.h). On
/// one thread, for what goes to and from files and networks; ops::cast is for computing. Both pointers aligned to their
/// type. Throws std::invalid_argument for another dtype.
void convert(DType from_dtype, const std::byte* from, DType to_dtype, std::byte* to, size_t count);

/// `tensor` itself where it has that dtype, else a converted copy.
Tensor converted(const Tensor& tensor, DType dtype);

}  // namespace trainyard
