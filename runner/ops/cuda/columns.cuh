#pragma once

#include "ops/column_blocks.h"
#include "ops/cuda/map.cuh"
#include "ops/elements.h"

namespace trainyard::ops::cuda {

/// parts[block, column] = Σ f(row, column) over the rows of the block: a thread a column, a row of the grid a block.
template <typename F>
__global__ void __launch_bounds__(kThreads)
    column_parts_kernel(int64_t rows, int64_t width, int64_t block_rows, F f, float* parts) {
  const int64_t column = grid_stride().first, first = blockIdx.y * block_rows;
  if (column >= width) return;
  float sum = 0;
  for (int64_t row = first; row < first + block_rows && row < rows; ++row) sum += f(row, column);
  parts[blockIdx.y * width + column] = sum;
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    add_parts_kernel(int64_t blocks, int64_t width, const float* parts, T* total) {
  const int64_t column = grid_stride().first;
  if (column >= width) return;
  float sum = 0;
  for (int64_t block = 0; block < blocks; ++block) sum += parts[block * width + column];
  total[column] = from_float<T>(to_float(total[column]) + sum);
}

/// total[column] += Σ f(row, column) over `rows`, summed in float32 in an order that depends on the sizes alone. F is a
/// struct with a __device__ operator() const; total: [width], any of the ops' dtypes.
template <typename F>
void add_column_sums(const char* name, int64_t rows, const F& f, Tensor& total) {
  const int64_t width = total.count();
  if (rows == 0 || width == 0) return;
  const Device device = total.device();
  const ColumnBlocks blocks = column_blocks(rows, width);
  const int64_t columns = (width + kThreads - 1) / kThreads;
  Tensor parts = Tensor::empty({blocks.count, width}, DType::Float32, device);
  launch(name, device, {.blocks = columns, .rows = blocks.count}, column_parts_kernel<F>, rows, width, blocks.rows, f,
         elements<float>(parts));
  with_element(total.dtype(), [&]<typename T>(T*) {
    launch(name, device, {.blocks = columns}, add_parts_kernel<T>, blocks.count, width,
           elements<float>(std::as_const(parts)), elements<T>(total));
  });
}

/// The elements of a [rows, width] tensor, to be summed themselves.
template <typename T>
struct ColumnOf {
  const T* x;
  int64_t width;
  __device__ float operator()(int64_t row, int64_t column) const { return to_float(x[row * width + column]); }
};

}  // namespace trainyard::ops::cuda
