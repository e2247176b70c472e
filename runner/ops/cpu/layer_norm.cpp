#include <cmath>

#include "ops/cpu/kernels.h"
#include "ops/cpu/row_sums.h"
#include "ops/cpu/simd.h"
#include "ops/elements.h"

namespace trainyard::ops::cpu {
namespace {

template <typename T>
struct CenteredRows {
  const T *x, *weight, *bias;
  T* y;
  float *mean, *rstd;
  int64_t hidden;
  float eps;
};

template <typename T>
TRAINYARD_MULTIVERSION void center_rows(const CenteredRows<T>& rows, int64_t begin, int64_t end) {
  const int64_t hidden = rows.hidden;
  for (int64_t row = begin; row < end; ++row) {
    const T* const x = rows.x + row * hidden;
    T* const y = rows.y + row * hidden;
    float sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < hidden; ++i) sum += to_float(x[i]);
    const float mean = sum / static_cast<float>(hidden);
    // Around the mean in a second pass: E[x²] − mean² would lose what the two have in common.
#pragma omp simd reduction(+ : squares)
    for (int64_t i = 0; i < hidden; ++i) squares += (to_float(x[i]) - mean) * (to_float(x[i]) - mean);
    const float rstd = 1.0F / std::sqrt(squares / static_cast<float>(hidden) + rows.eps);
    rows.mean[row] = mean, rows.rstd[row] = rstd;
#pragma omp simd
    for (int64_t i = 0; i < hidden; ++i)
      y[i] = from_float<T>((to_float(x[i]) - mean) * rstd * to_float(rows.weight[i]) + to_float(rows.bias[i]));
  }
}

template <typename T>
struct CenteredGradients {
  const T *dy, *x, *weight;
  const float *mean, *rstd;
  T* dx;
  int64_t hidden;
};

/// Adds the rows' share of dweight and dbias to `dweight` and `dbias`, [hidden] each.
template <typename T>
TRAINYARD_MULTIVERSION void center_rows_backward(const CenteredGradients<T>& rows, float* __restrict dweight,
                                                 float* __restrict dbias, int64_t begin, int64_t end) {
  const int64_t hidden = rows.hidden;
  const T* const weight = rows.weight;
  for (int64_t row = begin; row < end; ++row) {
    const T *const dy = rows.dy + row * hidden, *const x = rows.x + row * hidden;
    T* const dx = rows.dx + row * hidden;
    const float mean = rows.mean[row], rstd = rows.rstd[row];
    float sum = 0, along = 0;
#pragma omp simd reduction(+ : sum, along)
    for (int64_t i = 0; i < hidden; ++i) {
      const float g = to_float(dy[i]) * to_float(weight[i]);
      sum += g;
      along += g * (to_float(x[i]) - mean) * rstd;
    }
    sum /= static_cast<float>(hidden), along /= static_cast<float>(hidden);
#pragma omp simd
    for (int64_t i = 0; i < hidden; ++i) {
      const float d = to_float(dy[i]), n = (to_float(x[i]) - mean) * rstd;
      dweight[i] += d * n;
      dbias[i] += d;
      dx[i] = from_float<T>(rstd * (d * to_float(weight[i]) - sum - n * along));
    }
  }
}

}  // namespace

void layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, float eps, Tensor& y, RowMoments& moments) {
  with_element(x.dtype(), [&]<typename T>(T*) {
    const CenteredRows<T> rows{x.data<T>(),
                               weight.data<T>(),
                               bias.data<T>(),
                               y.data<T>(),
                               moments.mean.data<float>(),
                               moments.rstd.data<float>(),
                               x.size(1),
                               eps};
    parallel_for(x.size(0), rows_grain(x.size(1)), [&](int64_t begin, int64_t end) { center_rows(rows, begin, end); });
  });
}

void layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const RowMoments& moments,
                         LayerNormGradients& gradients) {
  const int64_t hidden = x.size(1);
  const Tensor both = with_element(x.dtype(), [&]<typename T>(T*) {
    const CenteredGradients<T> rows{
        dy.data<T>(),           x.data<T>(), weight.data<T>(), moments.mean.data<float>(), moments.rstd.data<float>(),
        gradients.dx.data<T>(), hidden};
    return row_sums(x.size(0), rows_grain(hidden), 2 * hidden, [&](int64_t begin, int64_t end, float* sums) {
      center_rows_backward(rows, sums, sums + hidden, begin, end);
    });
  });
  add_to(gradients.dweight, both.rows(0, hidden));
  add_to(gradients.dbias, both.rows(hidden, hidden));
}

}  // namespace trainyard::ops::cpu
