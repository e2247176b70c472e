#pragma once

#include "ops/cuda/scratch.h"

// What the products in matmul.cpp hold while they run.
namespace trainyard::ops::cuda {

/// The workspace that cuBLASLt may ask for, in bytes.
constexpr size_t kMostProductWorkspace = size_t{32} << 20;

/// Whether the product of factors like `a` is made in float32 first: cuBLASLt does not mix c's type with the factors'.
inline bool goes_by_float(const Tensor& a, const Tensor& c) {
  return c.dtype() != DType::Float32 && c.dtype() != a.dtype();
}

/// The product before it is converted to c's type.
inline ScratchTensor float_product(const Tensor& c) {
  return {c.shape(), DType::Float32};
}

}  // namespace trainyard::ops::cuda
