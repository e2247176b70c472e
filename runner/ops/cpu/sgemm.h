#pragma once

#include <cstdint>

#include "ops/matmul.h"

namespace trainyard::ops::cpu {

struct ProductSize {
  int64_t m, n, k;
  float alpha = 1, beta = 0;
};

/// A row-major matrix with `stride` elements from row to row.
struct Factor {
  const float* data;
  int64_t stride;
  Transpose transpose = Transpose::No;
};

struct Product {
  float* data;
  int64_t stride;
};

/// c = alpha · op(a) · op(b) + beta · c by oneDNN, on the calling thread's threads; on one within a parallel region.
/// No size may be 0. Nothing in a dry run.
void sgemm(const ProductSize& size, const Factor& a, const Factor& b, const Product& c);

}  // namespace trainyard::ops::cpu
