#include "ops/layer_norm.h"

#include "metrics/trace.h"
#include "ops/check.h"
#include "ops/cost.h"
#include "ops/kernels.h"

namespace trainyard::ops {
namespace {

void require_rows(std::string_view op, const Tensor& x, const Tensor& weight, const RowMoments& moments) {
  require_rank(op, "x", x, 2);
  require_floating(op, "x", x);
  require(op, "weight", weight, {x.size(1)}, x.dtype());
  require(op, "mean", moments.mean, {x.size(0)}, DType::Float32);
  require(op, "rstd", moments.rstd, {x.size(0)}, DType::Float32);
}

}  // namespace

void layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, float eps, Tensor& y, RowMoments moments) {
  const metrics::TraceSpan span("layer_norm", "op");
  require_rows("layer_norm", x, weight, moments);
  require("layer_norm", "bias", bias, weight.shape(), x.dtype());
  require("layer_norm", "y", y, x.shape(), x.dtype());
  tell_cost({&x, &y});
  kernel("layer_norm", &Kernels::layer_norm, {&x, &weight, &bias, &y, &moments.mean, &moments.rstd})(x, weight, bias,
                                                                                                     eps, y, moments);
}

void layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const RowMoments& moments,
                         LayerNormGradients gradients) {
  constexpr std::string_view kOp = "layer_norm_backward";
  const metrics::TraceSpan span("layer_norm_backward", "op");
  require_rows(kOp, x, weight, moments);
  require(kOp, "dy", dy, x.shape(), x.dtype());
  require(kOp, "dx", gradients.dx, x.shape(), x.dtype());
  require_floating(kOp, "dweight", gradients.dweight);
  require(kOp, "dweight", gradients.dweight, weight.shape(), gradients.dweight.dtype());
  require_floating(kOp, "dbias", gradients.dbias);
  require(kOp, "dbias", gradients.dbias, weight.shape(), gradients.dbias.dtype());
  tell_cost({&dy, &x, &gradients.dx});
  kernel("layer_norm_backward", &Kernels::layer_norm_backward,
         {&dy, &x, &weight, &moments.mean, &moments.rstd, &gradients.dx, &gradients.dweight, &gradients.dbias})(
      dy, x, weight, moments, gradients);
}

}  // namespace trainyard::ops
