#include "ops/float8.h"

#include <fmt/format.h>

#include <stdexcept>

#include "metrics/trace.h"
#include "ops/check.h"
#include "ops/cost.h"
#include "ops/kernels.h"

namespace trainyard::ops {
namespace {

void require_float8(std::string_view op, std::string_view name, const Tensor& tensor) {
  require_count(op, name, tensor, tensor.count());
  if (!is_float8(tensor.dtype()))
    throw std::invalid_argument(
        fmt::format("{}: {} is {}, but float8_e4m3fn or float8_e5m2 is needed", op, name, name_of(tensor.dtype())));
}

/// [1] or [rows], float32.
void require_scale(std::string_view op, const Tensor& scale, int64_t rows) {
  require(op, "a scale", scale, {scale.count() == 1 ? 1 : rows}, DType::Float32);
}

void require_target(const Tensor& x, const Float8Target& target, int64_t rows, int64_t inner) {
  require_float8("float8_cast", "values", target.values);
  require("float8_cast", "values", target.values, {rows, padded_inner(inner)}, target.values.dtype());
  if (target.scale.defined()) return require_scale("float8_cast", target.scale, rows);
  require("float8_cast", "x", x, x.shape(), target.values.dtype());
}

void require_factor(std::string_view name, const Float8Matrix& factor) {
  require_rank("float8_matmul", name, factor.values, 2);
  require_float8("float8_matmul", name, factor.values);
  require_scale("float8_matmul", factor.inverse_scale, factor.values.size(0));
}

Float8Scale empty_scale(int64_t count, Device device) {
  return {Tensor::empty({count}, DType::Float32, device), Tensor::empty({count}, DType::Float32, device)};
}

/// The scales of one factor that x is.
Float8Scale scale_of(const Tensor& x, const Float8Cast& cast, Along by) {
  const int64_t rows = x.size(by == Along::Rows ? 0 : 1);
  Tensor most = Tensor::empty({cast.scale_of == ScaleOf::Row ? rows : 1}, DType::Float32, x.device());
  absmax(x, cast.scale_of == ScaleOf::Row ? by : Along::All, most);
  Float8Scale made = empty_scale(cast.scale_of == ScaleOf::Tensor ? 1 : rows, x.device());
  float8_scale(most, cast, made);
  return made;
}

}  // namespace

void absmax(const Tensor& x, Along along, Tensor& most) {
  const metrics::TraceSpan span("absmax", "op");
  require_rank("absmax", "x", x, 2);
  require_floating("absmax", "x", x);
  require("absmax", "most", most, {along == Along::All ? 1 : x.size(along == Along::Rows ? 0 : 1)}, DType::Float32);
  tell_cost({&x, &most});
  kernel("absmax", &Kernels::absmax, {&x, &most})(x, along, most);
}

void float8_scale(const Tensor& most, const Float8Cast& cast, Float8Scale& made) {
  const metrics::TraceSpan span("float8_scale", "op");
  require_scale("float8_scale", most, made.scale.count());
  require("float8_scale", "scale", made.scale, {made.scale.count()}, DType::Float32);
  require("float8_scale", "inverse", made.inverse, made.scale.shape(), DType::Float32);
  tell_cost({&most, &made.scale, &made.inverse});
  kernel("float8_scale", &Kernels::float8_scale, {&most, &made.scale, &made.inverse})(most, cast, made);
}

void float8_cast(const Tensor& x, Float8Target by_rows, Float8Target by_columns) {
  const metrics::TraceSpan span("float8_cast", "op");
  require_rank("float8_cast", "x", x, 2);
  if (!is_float8(x.dtype())) require_floating("float8_cast", "x", x);
  if (by_rows.values.defined()) require_target(x, by_rows, x.size(0), x.size(1));
  if (by_columns.values.defined()) require_target(x, by_columns, x.size(1), x.size(0));
  tell_cost({&x, &by_rows.values, &by_columns.values});
  kernel("float8_cast", &Kernels::float8_cast,
         {&x, &by_rows.values, &by_rows.scale, &by_columns.values, &by_columns.scale})(x, by_rows, by_columns);
}

Float8Factors to_float8(const Tensor& x, const Float8Cast& cast, Float8Wanted wanted) {
  Float8Factors made;
  Float8Target by_rows, by_columns;
  Float8Scale scale;
  const auto target = [&](Along by) {
    if (!scale.scale.defined() || cast.scale_of != ScaleOf::Tensor) scale = scale_of(x, cast, by);
    const int64_t rows = x.size(by == Along::Rows ? 0 : 1), inner = x.size(by == Along::Rows ? 1 : 0);
    return Float8Target{scale.scale, Tensor::empty({rows, padded_inner(inner)}, cast.dtype, x.device())};
  };
  if (wanted != Float8Wanted::ByColumns) {
    by_rows = target(Along::Rows);
    made.by_rows = {by_rows.values, scale.inverse};
  }
  if (wanted != Float8Wanted::ByRows) {
    by_columns = target(Along::Columns);
    made.by_columns = {by_columns.values, scale.inverse};
  }
  float8_cast(x, by_rows, by_columns);
  return made;
}

Float8Matrix transposed(const Float8Matrix& matrix) {
  const Tensor& values = matrix.values;
  Float8Matrix made{Tensor::empty({values.size(1), padded_inner(values.size(0))}, values.dtype(), values.device()),
                    matrix.inverse_scale};
  float8_cast(values, {}, {{}, made.values});
  return made;
}

void float8_matmul(const Float8Matrix& a, const Float8Matrix& b, Tensor& c, Float8MatmulOptions options) {
  const metrics::TraceSpan span("float8_matmul", "op");
  require_factor("a", a);
  require_factor("b", b);
  const int64_t rows = a.values.size(0), inner = a.values.size(1), columns = b.values.size(0);
  require("float8_matmul", "b", b.values, {columns, inner}, b.values.dtype());
  if (inner != padded_inner(inner) || columns != padded_inner(columns))
    throw std::invalid_argument(
        fmt::format("float8_matmul: [{}, {}] x [{}, {}]ᵀ: the last two sizes must be multiples "
                    "of 16",
                    rows, inner, columns, inner));
  if (a.values.dtype() == DType::Float8E5M2 && b.values.dtype() == DType::Float8E5M2)
    throw std::invalid_argument("float8_matmul: a and b are both float8_e5m2, of which no device multiplies two");
  const bool is_by_rows = a.inverse_scale.count() == rows && b.inverse_scale.count() == columns;
  if (!is_by_rows && (a.inverse_scale.count() != 1 || b.inverse_scale.count() != 1))
    throw std::invalid_argument(fmt::format("float8_matmul: {} and {} scales: one of each, or both by rows",
                                            a.inverse_scale.count(), b.inverse_scale.count()));
  require_floating("float8_matmul", "c", c);
  require("float8_matmul", "c", c, {rows, columns}, c.dtype());
  tell_cost({&a.values, &b.values, &c}, 2.0 * static_cast<double>(rows * inner) * static_cast<double>(columns));
  kernel("float8_matmul", &Kernels::float8_matmul, {&a.values, &b.values, &a.inverse_scale, &b.inverse_scale, &c})(
      a, b, c, options);
}

}  // namespace trainyard::ops
