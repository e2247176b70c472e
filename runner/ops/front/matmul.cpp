#include "ops/matmul.h"

#include <fmt/format.h>

#include <stdexcept>

#include "metrics/trace.h"
#include "ops/check.h"
#include "ops/cost.h"
#include "ops/kernels.h"

namespace trainyard::ops {
namespace {

struct Sizes {
  int64_t rows, columns;
};

Sizes sizes_of(const Tensor& tensor, Transpose transpose) {
  if (transpose == Transpose::Yes) return {tensor.size(1), tensor.size(0)};
  return {tensor.size(0), tensor.size(1)};
}

}  // namespace

void matmul(const Tensor& a, const Tensor& b, Tensor& c, MatmulOptions options) {
  const metrics::TraceSpan span("matmul", "op");
  require_rank("matmul", "a", a, 2);
  require_rank("matmul", "b", b, 2);
  const Sizes left = sizes_of(a, options.a), right = sizes_of(b, options.b);
  if (left.columns != right.rows)
    throw std::invalid_argument(fmt::format("matmul: {}{} x {}{}: inner sizes {} and {} differ", to_string(a.shape()),
                                            options.a == Transpose::Yes ? "ᵀ" : "", to_string(b.shape()),
                                            options.b == Transpose::Yes ? "ᵀ" : "", left.columns, right.rows));
  require_floating("matmul", "a", a);
  require("matmul", "b", b, b.shape(), a.dtype());
  require_floating("matmul", "c", c);
  require("matmul", "c", c, {left.rows, right.columns}, c.dtype());
  if (options.bias.defined()) require("matmul", "bias", options.bias, {right.columns}, c.dtype());
  tell_cost({&a, &b, &c}, 2.0 * static_cast<double>(left.rows * left.columns) * static_cast<double>(right.columns));
  kernel("matmul", &Kernels::matmul, {&a, &b, &c, &options.bias})(a, b, c, options);
}

}  // namespace trainyard::ops
