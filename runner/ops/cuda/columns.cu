#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.cuh"

namespace trainyard::ops::cuda {
namespace {

/// Sizes in elements of T, of which a row's part has `columns`.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    copy_columns_kernel(int64_t count, int64_t columns, const T* from, int64_t from_row, T* to, int64_t to_row) {
  const Stride stride = grid_stride();
  for (int64_t i = stride.first; i < count; i += stride.step)
    to[i / columns * to_row + i % columns] = from[i / columns * from_row + i % columns];
}

template <typename T>
void copy_as(const Tensor& from, int64_t from_begin, int64_t columns, Tensor& to, int64_t to_begin) {
  launch("copy_columns", from.device(), grid_for(from.size(0) * columns), copy_columns_kernel<T>,
         from.size(0) * columns, columns, elements<T>(from) + from_begin, from.size(1), elements<T>(to) + to_begin,
         to.size(1));
}

}  // namespace

void copy_columns(const Tensor& from, int64_t from_begin, int64_t columns, Tensor& to, int64_t to_begin) {
  if (from.size(0) * columns == 0) return;
  switch (size_of(from.dtype())) {
    case 1:
      return copy_as<uint8_t>(from, from_begin, columns, to, to_begin);
    case 2:
      return copy_as<uint16_t>(from, from_begin, columns, to, to_begin);
    case 4:
      return copy_as<uint32_t>(from, from_begin, columns, to, to_begin);
    default:
      return copy_as<uint64_t>(from, from_begin, columns, to, to_begin);
  }
}

}  // namespace trainyard::ops::cuda
