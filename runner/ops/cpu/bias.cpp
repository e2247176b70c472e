#include "ops/cpu/kernels.h"
#include "ops/cpu/parallel.h"
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

// Blocks of rows, then the blocks in order, as in rms_norm_backward: at most kBlocks partial sums.
void bias_backward(const Tensor& dy, Tensor& dbias) {
  constexpr int64_t kBlocks = 32;
  const int64_t rows = dy.size(0), width = dy.size(1);
  const int64_t block_rows = std::max<int64_t>((rows + kBlocks - 1) / kBlocks, rows_grain(width));
  const int64_t blocks = (rows + block_rows - 1) / block_rows;
  if (blocks == 0) return;
  Tensor partial = Tensor::zeros({blocks, width}, DType::Float32);
  with_element(dy.dtype(), [&]<typename T>(T*) {
    parallel_for(blocks, 1, [&, dy = dy.data<T>(), sums = partial.data<float>()](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        const int64_t first = block * block_rows;
        add_rows_to(dy + first * width, sums + block * width, std::min(block_rows, rows - first), width);
      }
    });
  });
  Tensor total = partial.rows(0, 1);
  for (int64_t block = 1; block < blocks; ++block) add_to(total, partial.rows(block, 1));
  add_to(dbias, total);
}

}  // namespace trainyard::ops::cpu
