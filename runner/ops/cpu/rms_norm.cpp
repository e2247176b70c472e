#include "ops/cpu/kernels.h"
#include "ops/cpu/rms_norm_rows.h"
#include "ops/cpu/row_sums.h"
#include "ops/elements.h"

namespace trainyard::ops::cpu {
namespace {

template <typename T>
TRAINYARD_MULTIVERSION void normalize_rows(const NormRows<T>& rows, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) normalize_row(rows, rows.x + row * rows.hidden, row);
}

template <typename T>
TRAINYARD_MULTIVERSION void add_normalize_rows(const NormRows<T>& rows, const T* residual, T* sum, int64_t begin,
                                               int64_t end) {
  const int64_t hidden = rows.hidden;
  for (int64_t row = begin; row < end; ++row) {
    const T *const a = rows.x + row * hidden, *const b = residual + row * hidden;
    T* const total = sum + row * hidden;
#pragma omp simd
    for (int64_t i = 0; i < hidden; ++i) total[i] = from_float<T>(to_float(a[i]) + to_float(b[i]));
    normalize_row(rows, total, row);
  }
}

template <typename T>
TRAINYARD_MULTIVERSION void backward_rows(const NormBackwardRows<T>& rows, float* dweight, int64_t begin, int64_t end) {
  if (rows.accumulate)
    backward_rows_to<true>(rows, dweight, begin, end);
  else
    backward_rows_to<false>(rows, dweight, begin, end);
}

}  // namespace

void rms_norm(const Tensor& x, const Tensor& weight, float eps, Tensor& y, Tensor& rstd) {
  with_element(x.dtype(), [&]<typename T>(T*) {
    const NormRows<T> rows{x.data<T>(), weight.data<T>(), y.data<T>(), rstd.data<float>(), x.size(1), eps};
    parallel_for(x.size(0), rows_grain(x.size(1)),
                 [&](int64_t begin, int64_t end) { normalize_rows(rows, begin, end); });
  });
}

void add_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& weight, float eps, Tensor& sum, Tensor& y,
                  Tensor& rstd) {
  with_element(x.dtype(), [&]<typename T>(T*) {
    const NormRows<T> rows{x.data<T>(), weight.data<T>(), y.data<T>(), rstd.data<float>(), x.size(1), eps};
    parallel_for(x.size(0), rows_grain(x.size(1)),
                 [&, b = residual.data<T>(), total = sum.data<T>()](int64_t begin, int64_t end) {
                   add_normalize_rows(rows, b, total, begin, end);
                 });
  });
}

void rms_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                       RmsNormGradients& gradients) {
  const int64_t hidden = x.size(1);
  const Tensor dweight = with_element(x.dtype(), [&]<typename T>(T*) {
    const NormBackwardRows<T> rows{dy.data<T>(),           x.data<T>(), weight.data<T>(),       rstd.data<float>(),
                                   gradients.dx.data<T>(), hidden,      gradients.accumulate_dx};
    return row_sums(x.size(0), rows_grain(hidden), hidden,
                    [&](int64_t begin, int64_t end, float* sums) { backward_rows(rows, sums, begin, end); });
  });
  if (gradients.dweight.defined()) add_to(gradients.dweight, dweight);
}

}  // namespace trainyard::ops::cpu
