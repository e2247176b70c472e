#include "ops/cuda/matmul_scratch.h"

namespace trainyard::ops::cuda {

/// This is of a device on which cuBLASLt has a kernel for the product.
Scratch scratch::float8_matmul(const Float8Matrix&, const Float8Matrix&, Tensor& c, Float8MatmulOptions) {
  return {c.device(), kMostProductWorkspace};
}

Scratch scratch::matmul(const Tensor& a, const Tensor&, Tensor& c, MatmulOptions) {
  if (a.count() == 0 || c.count() == 0) return {c.device()};
  const int64_t product_bytes = goes_by_float(a, c) ? float_product(c).bytes() : 0;
  return {c.device(), static_cast<int64_t>(kMostProductWorkspace) + product_bytes};
}

}  // namespace trainyard::ops::cuda
