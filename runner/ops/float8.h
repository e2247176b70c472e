#pragma once

#include "tensor/tensor.h"

// Matrix products in 8 bits, scaled as torchao's float8 training does it (https://github.com/pytorch/ao,
// torchao/float8; Micikevicius et al. 2022): a matrix is multiplied by a scale that brings its largest value to the
// largest that the type holds, rounded, and the product divided by the scales of both. Everything stays on the device;
// nothing waits.
namespace trainyard::ops {

/// What has a scale of its own. Rows are those of the factor: what a sum of the product runs along.
enum class ScaleOf : uint8_t {
  Tensor,        ///< the whole matrix
  Row,           ///< each row
  TensorByRows,  ///< the whole matrix, its scale given for each row, as beside a factor of Row
};

/// How a matrix becomes one of 8 bits.
struct Float8Cast {
  DType dtype = DType::Float8E4M3;
  ScaleOf scale_of = ScaleOf::Tensor;
  bool power_of_2 = false;  ///< scales are rounded down to one: products with them are exact
  bool operator==(const Float8Cast&) const = default;
};

/// What values were multiplied by, and 1 over it: float32 [1], or [rows].
struct Float8Scale {
  Tensor scale, inverse;
};

/// A factor of a product: its element [row, i] is values[row, i] · inverse_scale[row].
struct Float8Matrix {
  Tensor values;         ///< in 8 bits [rows, padded(inner)], zeros past the inner size
  Tensor inverse_scale;  ///< float32 [1] or [rows]
};

/// What x [rows, columns] is as a factor: by its rows [rows, columns], and by its columns, as xᵀ [columns, rows].
struct Float8Factors {
  Float8Matrix by_rows, by_columns;
};
enum class Float8Wanted : uint8_t { ByRows, ByColumns, Both };

/// Up to a multiple of 16: tensor cores take no other inner size.
constexpr int64_t padded_inner(int64_t inner) {
  return (inner + 15) / 16 * 16;
}

enum class Along : uint8_t { All, Rows, Columns };

/// most = the largest |x| of x [rows, columns], float32, x float32, bfloat16 or float16: [1] of all, [rows] of each
/// row, [columns] of each column. 0 of nothing; a NaN counts as 0.
void absmax(const Tensor& x, Along along, Tensor& most);

/// scale[i] = largest value of `cast.dtype` / max(most[i], 1e-12), computed in float64 and rounded to float32, then
/// down to a power of 2 where `cast` says so; inverse[i] = 1 / scale[i]. `most` [1] or [n], both of `made` [n].
void float8_scale(const Tensor& most, const Float8Cast& cast, Float8Scale& made);

/// Where a cast goes: values of `dtype`, and the scales that it multiplies by; undefined: nowhere.
struct Float8Target {
  Tensor scale;   ///< float32 [1] or [rows of values]; undefined: x is of the dtype of `values` already
  Tensor values;  ///< [rows, padded_inner(columns)], by columns [columns, padded_inner(rows)]
};

/// Writes x · scale, to nearest even and the largest of its sign where it is beyond that, into one or both.
void float8_cast(const Tensor& x, Float8Target by_rows, Float8Target by_columns);

/// x [rows, columns] with scales of its own.
Float8Factors to_float8(const Tensor& x, const Float8Cast& cast, Float8Wanted wanted);

/// A factor in 8 bits [rows, columns], columns a multiple of 16, whose scale is of the whole matrix, by its columns.
Float8Matrix transposed(const Float8Matrix& matrix);

enum class Accumulate : bool { No, Yes };

struct Float8MatmulOptions {
  Accumulate accumulate = Accumulate::No;
  bool fast_sums =
      false;  ///< a device's units may keep sums with fewer bits than float32 on their way (use_fast_accum)
};

/// c = a · bᵀ, or c += with Yes: a [m, k], b [n, k], of which one at most is float8_e5m2, c [m, n] float32, bfloat16 or
/// float16, n a multiple of 16. Both scales are of the whole matrix, or both by rows. Sums are float32, rounded once at
/// the store. A CPU has no such units: it converts the factors to float32. A device needs compute capability 8.9.
void float8_matmul(const Float8Matrix& a, const Float8Matrix& b, Tensor& c, Float8MatmulOptions options = {});

}  // namespace trainyard::ops
