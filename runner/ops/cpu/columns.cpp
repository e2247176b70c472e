#include "ops/columns.h"

#include "ops/cpu/kernels.h"
#include "ops/cpu/parallel.h"
#include "tensor/copy_2d.h"

namespace trainyard::ops::cpu {

void copy_columns(const Tensor& from, int64_t from_begin, int64_t columns, Tensor& to, int64_t to_begin) {
  const auto size = static_cast<int64_t>(size_of(from.dtype()));
  const int64_t from_row = from.size(1) * size, to_row = to.size(1) * size;
  parallel_for(
      from.size(0), rows_grain(columns),
      [=, source = from.raw() + from_begin * size, target = to.raw() + to_begin * size](int64_t begin, int64_t end) {
        copy_2d(target + begin * to_row, to_row, source + begin * from_row, from_row, columns * size, end - begin);
      });
}

}  // namespace trainyard::ops::cpu
