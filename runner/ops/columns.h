#pragma once

#include "tensor/tensor.h"

namespace trainyard::ops {

/// Columns [from_begin, from_begin + columns) of each row of `from` [rows, …] become those from `to_begin` on of `to`
/// [rows, …]. Any dtype, the same for both; the two do not overlap.
/// Throws std::invalid_argument where rows, dtypes or columns do not fit.
void copy_columns(const Tensor& from, int64_t from_begin, int64_t columns, Tensor& to, int64_t to_begin);

}  // namespace trainyard::ops
