#include "ops/rms_norm_rope.h"

#include "metrics/trace.h"
#include "ops/check.h"
#include "ops/cost.h"
#include "ops/kernels.h"

namespace trainyard::ops {
namespace {

void require_heads(std::string_view op, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                   const RopePlaces& places) {
  require_rotation(op, x, places.positions, places.tables);
  const int64_t head_dim = 2 * places.tables.cos.size(1);
  require(op, "weight", weight, {head_dim}, x.dtype());
  require(op, "rstd", rstd, {x.size(0) * x.size(1) / head_dim}, DType::Float32);
}

}  // namespace

void rms_norm_rope(const Tensor& x, const Tensor& weight, float eps, const RopePlaces& places, Tensor& out,
                   Tensor& rstd) {
  const metrics::TraceSpan span("rms_norm_rope", "op");
  require_heads("rms_norm_rope", x, weight, rstd, places);
  require("rms_norm_rope", "out", out, x.shape(), x.dtype());
  tell_cost({&x, &out});
  const auto& [positions, tables] = places;
  kernel("rms_norm_rope", &Kernels::rms_norm_rope, {&x, &weight, &positions, &tables.cos, &tables.sin, &out, &rstd})(
      x, weight, eps, places, out, rstd);
}

void rms_norm_rope_backward(const Tensor& dout, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                            const RopePlaces& places, RmsNormRopeGradients gradients) {
  const metrics::TraceSpan span("rms_norm_rope_backward", "op");
  require_heads("rms_norm_rope_backward", x, weight, rstd, places);
  require("rms_norm_rope_backward", "dout", dout, x.shape(), x.dtype());
  require("rms_norm_rope_backward", "dx", gradients.dx, x.shape(), x.dtype());
  if (gradients.dweight.defined()) {
    require_floating("rms_norm_rope_backward", "dweight", gradients.dweight);
    require("rms_norm_rope_backward", "dweight", gradients.dweight, weight.shape(), gradients.dweight.dtype());
  }
  tell_cost({&dout, &x, &gradients.dx});
  const auto& [positions, tables] = places;
  kernel("rms_norm_rope_backward", &Kernels::rms_norm_rope_backward,
         {&dout, &x, &weight, &rstd, &positions, &tables.cos, &tables.sin, &gradients.dx, &gradients.dweight})(
      dout, x, weight, rstd, places, gradients);
}

}  // namespace trainyard::ops
