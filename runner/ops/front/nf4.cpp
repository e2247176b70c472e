#include "ops/nf4.h"

#include <fmt/format.h>

#include <stdexcept>

#include "metrics/trace.h"
#include "ops/check.h"
#include "ops/cost.h"
#include "ops/kernels.h"

namespace trainyard::ops {
namespace {

void require_scales(const Nf4Scales& scales, int64_t values) {
  require("nf4", "factor", scales.factor, {nf4_factors(values)}, DType::Float32);
  require("nf4", "mean", scales.mean, {1}, DType::Float32);
}

/// Whether `packed` is what `values` [rows, columns] take in NF4.
void require_packed(const Tensor& values, const Tensor& packed) {
  require_rank("nf4", "values", values, 2);
  require_floating("nf4", "values", values);
  if (values.size(1) % kNf4Block != 0)
    throw std::invalid_argument(
        fmt::format("nf4: rows of {} values are no whole blocks of {}", values.size(1), kNf4Block));
  require("nf4", "packed", packed, {values.size(0), nf4_row_bytes(values.size(1))}, DType::UInt8);
}

}  // namespace

void nf4_encode(const Tensor& values, Tensor& packed, Tensor& most) {
  const metrics::TraceSpan span("nf4_encode", "op");
  require_packed(values, packed);
  require("nf4", "values", values, values.shape(), DType::Float32);
  require("nf4", "most", most, {values.size(0), values.size(1) / kNf4Block}, DType::Float32);
  tell_cost({&values, &packed, &most});
  cpu::nf4_encode(values, packed, most);
}

void nf4_scales(const Tensor& most, Nf4Scales& made) {
  const metrics::TraceSpan span("nf4_scales", "op");
  require("nf4", "most", most, most.shape(), DType::Float32);
  require_scales(made, most.count() * kNf4Block);
  tell_cost({&most, &made.factor});
  cpu::nf4_scales(most, made);
}

void nf4_scale(const Tensor& most, const Nf4Scales& scales, int64_t first_row, Tensor& packed) {
  const metrics::TraceSpan span("nf4_scale", "op");
  require_rank("nf4", "most", most, 2);
  require("nf4", "most", most, most.shape(), DType::Float32);
  require("nf4", "packed", packed, {most.size(0), nf4_row_bytes(most.size(1) * kNf4Block)}, DType::UInt8);
  require("nf4", "mean", scales.mean, {1}, DType::Float32);
  const int64_t factors = nf4_factors((first_row + most.size(0)) * most.size(1) * kNf4Block);
  if (scales.factor.count() < factors)
    throw std::invalid_argument(fmt::format("nf4: {} factors, where the rows need {}", scales.factor.count(), factors));
  tell_cost({&most, &packed});
  cpu::nf4_scale(most, scales, first_row, packed);
}

void nf4_dequantize(const Tensor& packed, const Nf4Scales& scales, Tensor& values) {
  const metrics::TraceSpan span("nf4_dequantize", "op");
  require_packed(values, packed);
  require_scales(scales, values.count());
  tell_cost({&packed, &scales.factor, &values});
  kernel("nf4_dequantize", &Kernels::nf4_dequantize, {&packed, &scales.factor, &scales.mean, &values})(packed, scales,
                                                                                                       values);
}

}  // namespace trainyard::ops
