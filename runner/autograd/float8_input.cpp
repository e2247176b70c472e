#include "autograd/float8_input.h"

namespace trainyard::autograd {

using ops::Float8Wanted;

const ops::Float8Factors& Float8Input::of(const Tensor& x, const ops::Float8Cast& cast, Float8Wanted wanted) {
  if (!factors_ || cast_ != cast) factors_.emplace();
  cast_ = cast;
  const bool wants_rows = wanted != Float8Wanted::ByColumns && !factors_->by_rows.values.defined();
  const bool wants_columns = wanted != Float8Wanted::ByRows && !factors_->by_columns.values.defined();
  if (wants_rows && wants_columns) {
    factors_ = ops::to_float8(x, cast, Float8Wanted::Both);
  } else if (wants_rows) {
    factors_->by_rows = ops::to_float8(x, cast, Float8Wanted::ByRows).by_rows;
  } else if (wants_columns) {
    factors_->by_columns = ops::to_float8(x, cast, Float8Wanted::ByColumns).by_columns;
  }
  return *factors_;
}

ops::Float8Matrix Float8Input::columns(const ops::Float8Cast& cast) const {
  return factors_ && cast_ == cast ? factors_->by_columns : ops::Float8Matrix{};
}

}  // namespace trainyard::autograd
