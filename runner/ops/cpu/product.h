#pragma once

#include <cstdint>

#include "ops/matmul.h"

// What the kernels of matrix products take.
namespace trainyard::ops::cpu {

struct ProductSize {
  int64_t m, n, k;
  float alpha = 1, beta = 0;
};

/// A row-major matrix with `stride` elements from row to row.
template <typename T>
struct Factor {
  const T* data;
  int64_t stride;
  Transpose transpose = Transpose::No;

  Factor(const T* first, int64_t row_stride, Transpose how = Transpose::No)
      : data(first), stride(row_stride), transpose(how) {}
};

struct Product {
  float* data;
  int64_t stride;
};

}  // namespace trainyard::ops::cpu
