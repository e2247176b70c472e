#include "ops/dropout.h"

#include <fmt/format.h>

#include <stdexcept>

#include "metrics/trace.h"
#include "ops/check.h"
#include "ops/cost.h"
#include "ops/kernels.h"

namespace trainyard::ops {

void dropout(const Tensor& x, const Dropout& dropout, Tensor& y) {
  const metrics::TraceSpan span("dropout", "op");
  require_floating("dropout", "x", x);
  require_rank("dropout", "x", x, 2);
  require("dropout", "y", y, x.shape(), x.dtype());
  require_dropout("dropout", dropout);
  const int64_t rows = dropout.sequences.count();
  if (rows == 0 ? x.size(0) != 0 : dropout.tokens == 0 && x.size(0) % rows != 0)
    throw std::invalid_argument(fmt::format("dropout: {} tokens are not {} rows of equal length", x.size(0), rows));
  tell_cost({&x, &y});
  kernel("dropout", &Kernels::dropout, {&x, &dropout.sequences, &y})(x, dropout, y);
}

}  // namespace trainyard::ops
