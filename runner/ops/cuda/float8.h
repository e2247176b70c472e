#pragma once

#include "ops/float8.h"

namespace trainyard::ops::cuda {

/// c[row, column] = sums[row, column] · of_rows[row] · of_columns[column], or += with Yes; both float32, [1] or of
/// each.
void scaled_sums(const Tensor& sums, const Tensor& of_rows, const Tensor& of_columns, Tensor& c, Accumulate accumulate);

}  // namespace trainyard::ops::cuda
