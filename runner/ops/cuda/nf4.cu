#include "ops/nf4.h"

#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.cuh"
#include "ops/elements.h"
#include "ops/nf4_formula.h"

namespace trainyard::ops::cuda {
namespace {

/// A whole matrix in NF4.
struct Packed {
  const uint8_t* rows;
  const float *factor, *mean;
  int64_t columns;
};

/// A thread takes a byte of codes at a time.
template <typename T>
__global__ void __launch_bounds__(kThreads) nf4_dequantize_kernel(int64_t bytes, Packed packed, T* values) {
  __shared__ float table[16];
  if (threadIdx.x < 16) table[threadIdx.x] = nf4_value(static_cast<int>(threadIdx.x));
  __syncthreads();
  const int64_t of_row = packed.columns / 2, blocks = packed.columns / kNf4Block;
  const Stride stride = grid_stride();
  for (int64_t i = stride.first; i < bytes; i += stride.step) {
    const int64_t row = i / of_row, at = i % of_row, block = at / (kNf4Block / 2);
    const uint8_t* const from = packed.rows + row * nf4_row_bytes(packed.columns);
    const auto scaler = static_cast<int8_t>(from[of_row + block]);
    const float factor = packed.factor[(row * blocks + block) / kNf4FactorBlocks];
    const float scale = nf4_scale_of(scaler, factor, packed.mean[0]);
    Pack<T, 2> made;
    made.values[0] = from_float<T>(table[from[at] >> 4] * scale);
    made.values[1] = from_float<T>(table[from[at] & 15] * scale);
    store<2>(values, i, made);
  }
}

}  // namespace

void nf4_dequantize(const Tensor& packed, const Nf4Scales& scales, Tensor& values) {
  const int64_t bytes = values.count() / 2;
  if (bytes == 0) return;
  const Packed from{elements<uint8_t>(packed), elements<float>(scales.factor), elements<float>(scales.mean),
                    values.size(1)};
  with_element(values.dtype(), [&]<typename T>(T*) {
    launch("nf4_dequantize", values.device(), grid_for(bytes), nf4_dequantize_kernel<T>, bytes, from,
           elements<T>(values));
  });
}

}  // namespace trainyard::ops::cuda
