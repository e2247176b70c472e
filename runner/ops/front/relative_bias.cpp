#include "ops/relative_bias.h"

#include "metrics/trace.h"
#include "ops/check.h"
#include "ops/kernels.h"

namespace trainyard::ops {
namespace {

void require_all(std::string_view op, const Tensor& buckets, const Tensor& table, const Tensor& bias) {
  require_floating(op, "table", table);
  require_rank(op, "table", table, 2);
  require(op, "buckets", buckets, {buckets.count()}, DType::Int32);
  require_indices(op, "buckets", buckets, table.size(0));
  require(op, "bias", bias, {table.size(1), buckets.count()}, DType::Float32);
}

}  // namespace

void relative_bias(const Tensor& buckets, const Tensor& table, Tensor& bias) {
  const metrics::TraceSpan span("relative_bias", "op");
  require_all("relative_bias", buckets, table, bias);
  kernel("relative_bias", &Kernels::relative_bias, {&buckets, &table, &bias})(buckets, table, bias);
}

void relative_bias_backward(const Tensor& dbias, const Tensor& buckets, Tensor& dtable) {
  const metrics::TraceSpan span("relative_bias_backward", "op");
  require_all("relative_bias_backward", buckets, dtable, dbias);
  kernel("relative_bias_backward", &Kernels::relative_bias_backward, {&dbias, &buckets, &dtable})(dbias, buckets,
                                                                                                  dtable);
}

}  // namespace trainyard::ops
