#pragma once

#include "tensor/tensor.h"

// Matrices in NF4 (Dettmers et al. 2023, QLoRA), bit by bit as torchao's to_nf4 makes and reads them of float32
// (https://github.com/pytorch/ao, nf4_tensor.py): each value is one of 16, times the scale of its block of 64 values of
// a row; scales are quantised in their turn, to 8 bits beside a factor for each 256 blocks of the matrix.
namespace trainyard::ops {

inline constexpr int64_t kNf4Block = 64;          ///< values that share a scale
inline constexpr int64_t kNf4FactorBlocks = 256;  ///< blocks that share a factor; the last ones may be fewer

/// Bytes of a packed row: half a byte for each of `columns` values, a multiple of 64, the first of two in the upper
/// half; then for each block its scaler, an int8.
constexpr int64_t nf4_row_bytes(int64_t columns) {
  return columns / 2 + columns / kNf4Block;
}

/// What the scalers of a matrix are read with: the scale of its block b is scaler / factor[b / 256] + mean.
struct Nf4Scales {
  Tensor factor;  ///< float32 [nf4_factors(values of the matrix)]
  Tensor mean;    ///< float32 [1]
};
constexpr int64_t nf4_factors(int64_t values) {
  const int64_t of_factor = kNf4Block * kNf4FactorBlocks;
  return (values + of_factor - 1) / of_factor;
}

// A matrix is packed on the host, by ranks that each have some of its rows: nf4_encode() of what each has, nf4_scales()
// of what all have, nf4_scale() again of what each has. All throw std::invalid_argument for shapes that do not fit.

/// The values [rows, columns], float32 and finite, as packed rows [rows, nf4_row_bytes(columns)] whose scalers are not
/// written; most[row, block] = the largest |value|, float32 [rows, columns / 64].
void nf4_encode(const Tensor& values, Tensor& packed, Tensor& most);

/// factor and mean from `most` of all rows. The mean is added up in the order of torch.mean on a CPU with AVX2 by one
/// thread, which is its order with any number of threads up to 32,768 blocks.
void nf4_scales(const Tensor& most, Nf4Scales& made);

/// Writes the scalers of packed rows; `first_row`: the number of the first in the matrix.
void nf4_scale(const Tensor& most, const Nf4Scales& scales, int64_t first_row, Tensor& packed);

/// values [rows, columns] = the packed rows of a whole matrix; float32, bfloat16 or float16, rounded once from float32.
/// On any device.
void nf4_dequantize(const Tensor& packed, const Nf4Scales& scales, Tensor& values);

}  // namespace trainyard::ops
