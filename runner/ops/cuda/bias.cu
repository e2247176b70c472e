#include "ops/cuda/columns.cuh"
#include "ops/cuda/kernels.h"

namespace trainyard::ops::cuda {
namespace {

/// A block a row.
template <int kCount, typename T>
__global__ void __launch_bounds__(kThreads) add_bias_kernel(int64_t width, const T* bias, T* y) {
  T* const row = y + blockIdx.x * width;
  for (int64_t i = threadIdx.x; i < width / kCount; i += blockDim.x) {
    auto values = load<kCount>(row, i);
    const auto added = load<kCount>(bias, i);
    for (int k = 0; k < kCount; ++k)
      values.values[k] = from_float<T>(to_float(values.values[k]) + to_float(added.values[k]));
    store<kCount>(row, i, values);
  }
}

}  // namespace

void add_bias(Tensor& y, const Tensor& bias) {
  const int64_t rows = y.size(0), width = y.size(1);
  if (rows == 0) return;
  with_element(y.dtype(), [&]<typename T>(T*) {
    with_packs(
        width % kWide<T> == 0,
        [&](auto pack) {
          launch("add_bias", y.device(), grid_of_rows(rows, width / pack.value), add_bias_kernel<pack.value, T>, width,
                 elements<T>(bias), elements<T>(y));
        },
        elements<T>(bias), elements<T>(y));
  });
}

void bias_backward(const Tensor& dy, Tensor& dbias) {
  with_element(dy.dtype(), [&]<typename T>(T*) {
    add_column_sums("bias_backward", dy.size(0), ColumnOf<T>{elements<T>(dy), dy.size(1)}, dbias);
  });
}

}  // namespace trainyard::ops::cuda
