#include "ops/norm.h"

#include <stdexcept>
#include <vector>

#include "metrics/trace.h"
#include "ops/check.h"
#include "ops/cost.h"
#include "ops/kernels.h"

namespace trainyard::ops {

SquareSums sums_of_squares(std::span<const Tensor> tensors) {
  const metrics::TraceSpan span("sums_of_squares", "op");
  if (tensors.empty()) throw std::invalid_argument("sums_of_squares: no tensors");
  require_floating("sums_of_squares", "x", tensors.front());
  std::vector<const Tensor*> all;
  for (const Tensor& x : tensors) {
    require("sums_of_squares", "x", x, x.shape(), tensors.front().dtype());
    all.push_back(&x);
  }
  tell_cost(all);
  const auto count = static_cast<int64_t>(tensors.size());
  const Device device = tensors.front().device();
  if (dry_run()) return {Tensor::zeros({count}, DType::Float64, device), Tensor::zeros({1}, DType::Float64, device)};
  return kernel("sums_of_squares", &Kernels::sums_of_squares, all)(tensors);
}

Tensor clip_factor(const Tensor& squares, double limit, double loss_scale) {
  const metrics::TraceSpan span("clip_factor", "op");
  require_rank("clip_factor", "squares", squares, 2);
  require("clip_factor", "squares", squares, squares.shape(), DType::Float64);
  if (dry_run()) return Tensor::zeros({1}, DType::Float32, squares.device());
  return kernel("clip_factor", &Kernels::clip_factor, {&squares})(squares, limit, loss_scale);
}

bool all_finite(const Tensor& x) {
  const metrics::TraceSpan span("all_finite", "op");
  require_floating("all_finite", "x", x);
  tell_cost({&x});
  return dry_run() || kernel("all_finite", &Kernels::all_finite, {&x})(x);
}

}  // namespace trainyard::ops
