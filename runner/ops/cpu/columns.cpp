#include "ops/columns.h"

#include <cstring>

#include "ops/cpu/kernels.h"
#include "ops/cpu/parallel.h"

namespace trainyard::ops::cpu {

void copy_columns(const Tensor& from, int64_t from_begin, int64_t columns, Tensor& to, int64_t to_begin) {
  const auto size = static_cast<int64_t>(size_of(from.dtype()));
  const int64_t from_row = from.size(1) * size, to_row = to.size(1) * size;
  parallel_for(from.size(0), rows_grain(columns),
               [=, source = from.raw() + from_begin * size, target = to.raw() + to_begin * size](int64_t begin,
                                                                                                int64_t end) {
                 for (int64_t row = begin; row < end; ++row)
                   std::memcpy(target + row * to_row, source + row * from_row, static_cast<size_t>(columns * size));
               });
}

}  // namespace trainyard::ops::cpu
