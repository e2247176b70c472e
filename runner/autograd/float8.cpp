#include "autograd/float8.h"

#include <stdexcept>

#include "ops/float8.h"
#include "ops/matmul.h"

namespace trainyard::autograd {
namespace {

using ops::Float8Cast;
using ops::Float8Factors;
using ops::Float8Matrix;
using ops::Float8Wanted;
using ops::ScaleOf;

/// How a layer's tensors become factors.
struct Casts {
  Float8Cast input, weight;       ///< of y = x · Wᵀ
  Float8Cast gradient;            ///< dy, of both products of the way back
  Float8Cast weight_in_backward;  ///< of dx = dy · W
  bool weight_gradient = true;    ///< dW = dyᵀ · x is in 8 bits too
};

Casts casts_of(Float8Recipe recipe) {
  const Float8Cast by_tensor, by_row{.scale_of = ScaleOf::Row, .power_of_2 = true};
  switch (recipe) {
    case Float8Recipe::Tensorwise:
      return {by_tensor, by_tensor, {.dtype = DType::Float8E5M2}, by_tensor};
    case Float8Recipe::Rowwise:
      return {by_row, by_row, by_row, by_row};
    case Float8Recipe::RowwiseWithGwHp:
      return {by_row, by_row, by_row, {.scale_of = ScaleOf::TensorByRows, .power_of_2 = true}, false};
  }
  throw std::logic_error("casts_of: no such recipe");
}

/// The weight by its rows, [out, in]; it may have been gathered so.
Float8Matrix by_rows(const Parameter& weight, const Float8Cast& cast) {
  if (weight.inverse_scale().defined()) return {weight.value(), weight.inverse_scale()};
  return ops::to_float8(weight.value(), cast, Float8Wanted::ByRows).by_rows;
}

/// The weight by its columns, [in, out].
Float8Matrix by_columns(const Parameter& weight, const Float8Cast& cast) {
  if (weight.inverse_scale().defined()) return ops::transposed({weight.value(), weight.inverse_scale()});
  return ops::to_float8(weight.value(), cast, Float8Wanted::ByColumns).by_columns;
}

/// Whether its gradient is a product in 8 bits.
bool has_float8_gradient(const Casts& casts, const Parameter& weight) {
  return casts.weight_gradient && !weight.is_frozen();
}

}  // namespace

Tensor float8_linear(const Variable& x, const Parameter& weight) {
  const Casts casts = casts_of(*weight.float8());
  const bool goes_back = x.tape() && has_float8_gradient(casts, weight);
  Float8Input own;
  Float8Input& input = x.tape() ? *x.float8_input() : own;
  const Float8Matrix by_x =
      input.of(x.value(), casts.input, goes_back ? Float8Wanted::Both : Float8Wanted::ByRows).by_rows;
  Tensor y = Tensor::empty({x.value().size(0), weight.shape()[0]}, x.value().dtype(), x.value().device());
  ops::float8_matmul(by_x, by_rows(weight, casts.weight), y, {.fast_sums = true});
  return y;
}

Float8Kept kept_for_float8(const Variable& x, const Parameter& weight) {
  if (weight.is_frozen()) return {};
  const Casts casts = casts_of(*weight.float8());
  if (!casts.weight_gradient) return {.columns = {}, .x = x.value()};
  const Float8Matrix columns = x.float8_input()->columns(casts.input);
  return {.columns = columns, .x = columns.values.defined() ? Tensor() : x.value()};
}

Tensor float8_linear_backward(const Tensor& dy, const Float8Kept& kept, Parameter& weight) {
  const Casts casts = casts_of(*weight.float8());
  const bool both = has_float8_gradient(casts, weight);
  const Float8Factors of_dy = ops::to_float8(dy, casts.gradient, both ? Float8Wanted::Both : Float8Wanted::ByRows);
  if (!weight.is_frozen()) {
    const Parameter::GradientSum to = weight.gradient_sum();
    if (both) {
      const Float8Matrix of_x =
          kept.x.defined() ? ops::to_float8(kept.x, casts.input, Float8Wanted::ByColumns).by_columns : kept.columns;
      ops::float8_matmul(of_dy.by_columns, of_x, to.sum,
                         {.accumulate = to.accumulate ? ops::Accumulate::Yes : ops::Accumulate::No});
    } else {
      ops::matmul(dy, kept.x, to.sum, {.a = ops::Transpose::Yes, .accumulate = to.accumulate});
    }
  }
  Tensor dx = Tensor::empty({dy.size(0), weight.shape()[1]}, dy.dtype(), dy.device());
  ops::float8_matmul(of_dy.by_rows, by_columns(weight, casts.weight_in_backward), dx);
  return dx;
}

}  // namespace trainyard::autograd
