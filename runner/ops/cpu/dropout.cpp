#include "ops/dropout.h"

#include <algorithm>

#include "ops/cpu/kernels.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/simd.h"
#include "ops/dropout_mask.h"
#include "ops/elements.h"

namespace trainyard::ops::cpu {
namespace {

template <typename T>
TRAINYARD_MULTIVERSION void drop_token(const T* x, T* y, int64_t width, uint32_t first_column, DropoutStream stream,
                                       DropoutRate rate) {
#pragma omp simd
  for (int64_t i = 0; i < width; ++i) {
    const float factor =
        dropout_bits(stream, first_column + static_cast<uint32_t>(i)) < rate.threshold ? 0.0F : rate.scale;
    y[i] = from_float<T>(to_float(x[i]) * factor);
  }
}

}  // namespace

void dropout(const Tensor& x, const Dropout& dropout, Tensor& y) {
  if (x.count() == 0) return;
  const int64_t width = x.size(1), rows = dropout.sequences.count();
  const DropoutTokens tokens{dropout.sequences.data<int64_t>(), rows,
                             dropout.tokens > 0 ? dropout.tokens : x.size(0) / rows, dropout.first_token};
  const auto column = static_cast<uint32_t>(dropout.first_column);
  const DropoutRate rate(dropout.rate);
  with_element(x.dtype(), [&]<typename T>(T*) {
    parallel_for(x.size(0), rows_grain(width),
                 [=, seed = dropout.seed, x = x.data<T>(), y = y.data<T>()](int64_t begin, int64_t end) {
                   for (int64_t token = begin; token < end; ++token)
                     drop_token(x + token * width, y + token * width, width, column, tokens.stream(seed, token), rate);
                 });
  });
}

}  // namespace trainyard::ops::cpu
