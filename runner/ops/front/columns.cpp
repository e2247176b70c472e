#include "ops/columns.h"

#include <fmt/format.h>

#include <stdexcept>

#include "metrics/trace.h"
#include "ops/check.h"
#include "ops/cost.h"
#include "ops/kernels.h"

namespace trainyard::ops {

void copy_columns(const Tensor& from, int64_t from_begin, int64_t columns, Tensor& to, int64_t to_begin) {
  const metrics::TraceSpan span("copy_columns", "op");
  require_rank("copy_columns", "from", from, 2);
  require("copy_columns", "to", to, {from.size(0), to.size(-1)}, from.dtype());
  if (from_begin < 0 || to_begin < 0 || columns < 0 || from_begin + columns > from.size(1) ||
      to_begin + columns > to.size(1))
    throw std::invalid_argument(fmt::format("copy_columns: {} columns from {} of {} do not fit at {} of {}", columns,
                                            from_begin, from.size(1), to_begin, to.size(1)));
  tell_cost({&from, &to});
  kernel("copy_columns", &Kernels::copy_columns, {&from, &to})(from, from_begin, columns, to, to_begin);
}

}  // namespace trainyard::ops
