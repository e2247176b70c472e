#pragma once

#include "ops/cuda/column_blocks.h"
#include "ops/cuda/map.cuh"
#include "ops/elements.h"

namespace trainyard::ops::cuda {

/// The columns that a block has side by side, a thread of each warp for each: its warps take the rows in turn.
constexpr int kColumns = 32;

/// The column of this thread.
__device__ inline int64_t column_of_block() {
  return int64_t{blockIdx.x} * kColumns + threadIdx.x % kColumns;
}

/// value(row) of all rows of [begin, end) combined, and with 0, for this thread's column: on the threads of the first
/// warp; 0 on the others. Each thread of the block calls it.
template <typename Value, typename F>
__device__ float down_column(int64_t begin, int64_t end, const Value& value, const F& combine) {
  constexpr int kWarps = kThreads / kColumns;
  __shared__ float of_warp[kWarps][kColumns];
  const int warp = static_cast<int>(threadIdx.x) / kColumns, lane = static_cast<int>(threadIdx.x) % kColumns;
  float all = 0;
  for (int64_t row = begin + warp; row < end; row += kWarps) all = combine(all, value(row));
  of_warp[warp][lane] = all;
  __syncthreads();
  if (warp > 0) return 0;
  for (int other = 1; other < kWarps; ++other) all = combine(all, of_warp[other][lane]);
  return all;
}

/// A row of the grid a block of rows.
template <typename F, typename Combine>
__global__ void __launch_bounds__(kThreads)
    column_parts_kernel(int64_t rows, int64_t width, int64_t block_rows, F f, Combine combine, float* parts) {
  const int64_t column = column_of_block(), first = blockIdx.y * block_rows;
  const int64_t end = column < width ? std::min(first + block_rows, rows) : first;
  const float all = down_column(
      first, end, [&](int64_t row) { return f(row, column); }, combine);
  if (threadIdx.x < kColumns && column < width) parts[blockIdx.y * width + column] = all;
}

/// parts[block, column] = f(row, column) of all rows of the block combined, and with 0. F and Combine are structs with
/// a __device__ operator() const; parts: float32 [blocks.count, width].
template <typename F, typename Combine>
void column_parts(const char* name, int64_t rows, const ColumnBlocks& blocks, const F& f, const Combine& combine,
                  Tensor& parts) {
  const int64_t width = parts.count() / blocks.count;
  launch(name, parts.device(), {.blocks = (width + kColumns - 1) / kColumns, .rows = blocks.count},
         column_parts_kernel<F, Combine>, rows, width, blocks.rows, f, combine, elements<float>(parts));
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    add_parts_kernel(int64_t blocks, int64_t width, const float* parts, T* total) {
  const int64_t column = column_of_block();
  const float sum = down_column(
      0, column < width ? blocks : 0, [&](int64_t block) { return parts[block * width + column]; }, Sum{});
  if (threadIdx.x < kColumns && column < width) total[column] = from_float<T>(to_float(total[column]) + sum);
}

/// total[column] += Σ f(row, column) over `rows`, summed in float32 in an order that depends on the sizes alone. F is a
/// struct with a __device__ operator() const; total: [width], any of the ops' dtypes.
template <typename F>
void add_column_sums(const char* name, int64_t rows, const F& f, Tensor& total) {
  const int64_t width = total.count();
  if (rows == 0 || width == 0) return;
  const Device device = total.device();
  const ColumnBlocks blocks = column_blocks(rows, width);
  Tensor parts = parts_of(blocks, width).on(device);
  column_parts(name, rows, blocks, f, Sum{}, parts);
  with_element(total.dtype(), [&]<typename T>(T*) {
    launch(name, device, {.blocks = (width + kColumns - 1) / kColumns}, add_parts_kernel<T>, blocks.count, width,
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
