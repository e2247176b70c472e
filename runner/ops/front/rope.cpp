#include "ops/rope.h"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

#include "metrics/trace.h"
#include "ops/check.h"
#include "ops/cost.h"
#include "ops/kernels.h"

namespace trainyard::ops {

// std::cos of a float is within 1 ulp of PyTorch's vectorised one; the angle, which decides, is the same float.
RopeTables rope_tables(int64_t positions, std::span<const float> inv_freq) {
  const auto half = static_cast<int64_t>(inv_freq.size());
  RopeTables tables{.cos = Tensor::empty({positions, half}, DType::Float32),
                    .sin = Tensor::empty({positions, half}, DType::Float32)};
  if (dry_run()) return tables;
  float *cos = tables.cos.data<float>(), *sin = tables.sin.data<float>();
  for (int64_t position = 0; position < positions; ++position)
    for (const float frequency : inv_freq) {
      const float angle = static_cast<float>(position) * frequency;
      *cos++ = std::cos(angle);
      *sin++ = std::sin(angle);
    }
  return tables;
}

void require_rotation(std::string_view op, const Tensor& x, const Tensor& positions, const RopeTables& tables) {
  require_rank(op, "x", x, 2);
  require_rank(op, "cos", tables.cos, 2);
  require_floating(op, "x", x);
  require(op, "positions", positions, {x.size(0)}, DType::Int32);
  require(op, "cos", tables.cos, tables.cos.shape(), DType::Float32);
  require(op, "sin", tables.sin, tables.cos.shape(), DType::Float32);
  const int64_t head_dim = 2 * tables.cos.size(1);
  if (head_dim == 0 || x.size(1) % head_dim != 0)
    throw std::invalid_argument(fmt::format("{}: x is {}, whose width is no multiple of the head size {} of the tables",
                                            op, to_string(x.shape()), head_dim));
  require_indices(op, "positions", positions, tables.cos.size(0));
}

void rope(const Tensor& x, const Tensor& positions, const RopeTables& tables, Rotation rotation, Tensor& out) {
  const metrics::TraceSpan span("rope", "op");
  require_rotation("rope", x, positions, tables);
  require("rope", "out", out, x.shape(), x.dtype());
  tell_cost({&x, &out});
  kernel("rope", &Kernels::rope, {&x, &positions, &tables.cos, &tables.sin, &out})(x, positions, tables, rotation, out);
}

}  // namespace trainyard::ops
