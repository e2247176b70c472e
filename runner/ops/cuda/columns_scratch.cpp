#include "ops/cuda/column_blocks.h"

namespace trainyard::ops::cuda {
namespace {

/// Each kernel here adds the columns of a matrix with the rows of `x` to one total at a time, unless that is undefined.
Scratch of_column_sums(const Tensor& x, const Tensor& total) {
  if (!total.defined() || total.count() == 0) return {x.device()};
  const int64_t width = total.count();
  return {x.device(), parts_of(column_blocks(x.size(0), width), width).bytes()};
}

}  // namespace

Scratch scratch::bias_backward(const Tensor& dy, Tensor& dbias) {
  return of_column_sums(dy, dbias);
}

Scratch scratch::layer_norm_backward(const Tensor& dy, const Tensor&, const Tensor&, const RowMoments&,
                                     LayerNormGradients& gradients) {
  return of_column_sums(dy, gradients.dweight);
}

Scratch scratch::rms_norm_backward(const Tensor& dy, const Tensor&, const Tensor&, const Tensor&,
                                   RmsNormGradients& gradients) {
  return of_column_sums(dy, gradients.dweight);
}

Scratch scratch::rms_norm_rope_backward(const Tensor& dout, const Tensor&, const Tensor&, const Tensor&,
                                        const RopePlaces&, RmsNormRopeGradients& gradients) {
  return of_column_sums(dout, gradients.dweight);
}

}  // namespace trainyard::ops::cuda
