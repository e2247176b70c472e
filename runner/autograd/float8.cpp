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

/// By its columns, [in, out].
Float8Matrix by_columns(const Parameter& weight, const Float8Cast& cast) {
  if (weight.inverse_scale().defined()) return ops::transposed({weight.value(), weight.inverse_scale()});
  return ops::to_float8(weight.value(), cast, Float8Wanted::ByColumns).by_columns;
}

}  // namespace

Tensor float8_linear(const Tensor& x, const Parameter& weight) {
  const Casts casts = casts_of(*weight.float8());
  Tensor y = Tensor::empty({x.size(0), weight.shape()[0]}, x.dtype(), x.device());
  ops::float8_matmul(ops::to_float8(x, casts.input, Float8Wanted::ByRows).by_rows, by_rows(weight, casts.weight), y);
  return y;
}

Tensor float8_linear_backward(const Tensor& dy, const Tensor& x, Parameter& weight) {
  const Casts casts = casts_of(*weight.float8());
  const bool both = casts.weight_gradient && !weight.is_frozen();
  const Float8Factors of_dy = ops::to_float8(dy, casts.gradient, both ? Float8Wanted::Both : Float8Wanted::ByRows);
  if (both) {
    const Float8Matrix of_x = ops::to_float8(x, casts.input, Float8Wanted::ByColumns).by_columns;
    ops::float8_matmul(of_dy.by_columns, of_x, weight.gradient(), ops::Accumulate::Yes);
  } else if (!weight.is_frozen()) {
    ops::matmul(dy, x, weight.gradient(), {.a = ops::Transpose::Yes, .accumulate = true});
  }
  Tensor dx = Tensor::empty(x.shape(), x.dtype(), x.device());
  ops::float8_matmul(of_dy.by_rows, by_columns(weight, casts.weight_in_backward), dx);
  return dx;
}

}  // namespace trainyard::autograd
