#include "ops/rms_norm.h"

#include "metrics/trace.h"
#include "ops/check.h"
#include "ops/cost.h"
#include "ops/kernels.h"

namespace trainyard::ops {
namespace {

void require_rows(std::string_view op, const Tensor& x, const Tensor& weight, const Tensor& rstd) {
  require_rank(op, "x", x, 2);
  require_floating(op, "x", x);
  require(op, "weight", weight, {x.size(1)}, x.dtype());
  require(op, "rstd", rstd, {x.size(0)}, DType::Float32);
}

}  // namespace

void rms_norm(const Tensor& x, const Tensor& weight, float eps, Tensor& y, Tensor& rstd) {
  const metrics::TraceSpan span("rms_norm", "op");
  require_rows("rms_norm", x, weight, rstd);
  require("rms_norm", "y", y, x.shape(), x.dtype());
  tell_cost({&x, &y});
  kernel("rms_norm", &Kernels::rms_norm, {&x, &weight, &y, &rstd})(x, weight, eps, y, rstd);
}

void add_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& weight, float eps, Tensor& sum, Tensor& y,
                  Tensor& rstd) {
  const metrics::TraceSpan span("add_rms_norm", "op");
  require_rows("add_rms_norm", x, weight, rstd);
  require("add_rms_norm", "residual", residual, x.shape(), x.dtype());
  require("add_rms_norm", "sum", sum, x.shape(), x.dtype());
  require("add_rms_norm", "y", y, x.shape(), x.dtype());
  tell_cost({&x, &residual, &sum, &y});
  kernel("add_rms_norm", &Kernels::add_rms_norm, {&x, &residual, &weight, &sum, &y, &rstd})(x, residual, weight, eps,
                                                                                            sum, y, rstd);
}

void rms_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                       RmsNormGradients gradients) {
  const metrics::TraceSpan span("rms_norm_backward", "op");
  require_rows("rms_norm_backward", x, weight, rstd);
  require("rms_norm_backward", "dy", dy, x.shape(), x.dtype());
  require("rms_norm_backward", "dx", gradients.dx, x.shape(), x.dtype());
  if (gradients.dweight.defined()) {
    require_floating("rms_norm_backward", "dweight", gradients.dweight);
    require("rms_norm_backward", "dweight", gradients.dweight, weight.shape(), gradients.dweight.dtype());
  }
  tell_cost({&dy, &x, &gradients.dx});
  kernel("rms_norm_backward", &Kernels::rms_norm_backward,
         {&dy, &x, &weight, &rstd, &gradients.dx, &gradients.dweight})(dy, x, weight, rstd, gradients);
}

}  // namespace trainyard::ops
