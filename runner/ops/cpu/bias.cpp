#include "ops/cpu/kernels.h"
#include "ops/cpu/row_sums.h"
#include "ops/cpu/simd.h"
#include "ops/elements.h"

namespace trainyard::ops::cpu {
namespace {

template <typename T>
TRAINYARD_MULTIVERSION void add_to_rows(T* y, const T* bias, int64_t rows, int64_t width) {
  for (int64_t row = 0; row < rows; ++row, y += width) {
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) y[i] = from_float<T>(to_float(y[i]) + to_float(bias[i]));
  }
}

template <typename T>
TRAINYARD_MULTIVERSION void add_rows_to(const T* dy, float* sums, int64_t rows, int64_t width) {
  for (int64_t row = 0; row < rows; ++row, dy += width) {
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) sums[i] += to_float(dy[i]);
  }
}

}  // namespace

void add_bias(Tensor& y, const Tensor& bias) {
  const int64_t width = y.size(1);
  with_element(y.dtype(), [&]<typename T>(T*) {
    parallel_for(y.size(0), rows_grain(width), [&, y = y.data<T>(), bias = bias.data<T>()](int64_t begin, int64_t end) {
      add_to_rows(y + begin * width, bias, end - begin, width);
    });
  });
}

void bias_backward(const Tensor& dy, Tensor& dbias) {
  const int64_t width = dy.size(1);
  const Tensor sums = with_element(dy.dtype(), [&]<typename T>(T*) {
    return row_sums(dy.size(0), rows_grain(width), width,
                    [width, dy = dy.data<T>()](int64_t begin, int64_t end, float* to) {
                      add_rows_to(dy + begin * width, to, end - begin, width);
                    });
  });
  add_to(dbias, sums);
}

}  // namespace trainyard::ops::cpu
