#include "ops/cpu/kernels.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/simd.h"
#include "ops/elements.h"

namespace trainyard::ops::cpu {
namespace {

template <typename T>
struct Rows {
  const T *x, *weight;
  T* y;
  float* rstd;
  int64_t hidden;
  float eps;
};

template <typename T>
TRAINYARD_INLINE void normalize_row(const Rows<T>& rows, const T* x, int64_t row) {
  float squares = 0;
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < rows.hidden; ++i) squares += to_float(x[i]) * to_float(x[i]);
  const float rstd = 1.0F / __builtin_sqrtf(squares / static_cast<float>(rows.hidden) + rows.eps);
  const T* const weight = rows.weight;
  T* const y = rows.y + row * rows.hidden;
  const int64_t hidden = rows.hidden;
#pragma omp simd
  for (int64_t i = 0; i < hidden; ++i) y[i] = from_float<T>(to_float(weight[i]) * rounded_to<T>(to_float(x[i]) * rstd));
  rows.rstd[row] = rstd;
}

template <typename T>
TRAINYARD_MULTIVERSION void normalize_rows(const Rows<T>& rows, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) normalize_row(rows, rows.x + row * rows.hidden, row);
}

template <typename T>
TRAINYARD_MULTIVERSION void add_normalize_rows(const Rows<T>& rows, const T* residual, T* sum, int64_t begin,
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
struct BackwardRows {
  const T *dy, *x, *weight;
  const float* rstd;
  T* dx;
  int64_t hidden;
  bool accumulate;
};

/// Adds the rows' share of dweight to `dweight` [hidden].
template <bool kAccumulate, typename T>
TRAINYARD_INLINE void backward_rows_to(const BackwardRows<T>& rows, float* __restrict dweight, int64_t begin,
                                       int64_t end) {
  const int64_t hidden = rows.hidden;
  const T* const weight = rows.weight;
  for (int64_t row = begin; row < end; ++row) {
    const T *const dy = rows.dy + row * hidden, *const x = rows.x + row * hidden;
    T* const dx = rows.dx + row * hidden;
    const float rstd = rows.rstd[row];
    float dot = 0;
#pragma omp simd reduction(+ : dot)
    for (int64_t i = 0; i < hidden; ++i) dot += to_float(dy[i]) * to_float(weight[i]) * to_float(x[i]);
    const float along_x = dot * rstd * rstd * rstd / static_cast<float>(hidden);
#pragma omp simd
    for (int64_t i = 0; i < hidden; ++i) {
      const float d = to_float(dy[i]), value = to_float(x[i]);
      dweight[i] += d * rounded_to<T>(value * rstd);
      const float gradient = rstd * d * to_float(weight[i]) - along_x * value;
      dx[i] = from_float<T>(kAccumulate ? to_float(dx[i]) + gradient : gradient);
    }
  }
}

template <typename T>
TRAINYARD_MULTIVERSION void backward_rows(const BackwardRows<T>& rows, float* dweight, int64_t begin, int64_t end) {
  if (rows.accumulate)
    backward_rows_to<true>(rows, dweight, begin, end);
  else
    backward_rows_to<false>(rows, dweight, begin, end);
}

}  // namespace

void rms_norm(const Tensor& x, const Tensor& weight, float eps, Tensor& y, Tensor& rstd) {
  with_element(x.dtype(), [&]<typename T>(T*) {
    const Rows<T> rows{x.data<T>(), weight.data<T>(), y.data<T>(), rstd.data<float>(), x.size(1), eps};
    parallel_for(x.size(0), rows_grain(x.size(1)),
                 [&](int64_t begin, int64_t end) { normalize_rows(rows, begin, end); });
  });
}

void add_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& weight, float eps, Tensor& sum, Tensor& y,
                  Tensor& rstd) {
  with_element(x.dtype(), [&]<typename T>(T*) {
    const Rows<T> rows{x.data<T>(), weight.data<T>(), y.data<T>(), rstd.data<float>(), x.size(1), eps};
    parallel_for(x.size(0), rows_grain(x.size(1)),
                 [&, b = residual.data<T>(), total = sum.data<T>()](int64_t begin, int64_t end) {
                   add_normalize_rows(rows, b, total, begin, end);
                 });
  });
}

// dweight is summed over blocks of rows, then over the blocks in order: neither depends on the number of threads. At
// most kBlocks partial sums, so that they stay small beside x.
void rms_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                       RmsNormGradients& gradients) {
  constexpr int64_t kBlocks = 32;
  const int64_t tokens = x.size(0), hidden = x.size(1);
  const int64_t block_rows = std::max<int64_t>((tokens + kBlocks - 1) / kBlocks, rows_grain(hidden));
  const int64_t blocks = (tokens + block_rows - 1) / block_rows;
  Tensor partial = Tensor::zeros({blocks, hidden}, DType::Float32);
  with_element(x.dtype(), [&]<typename T>(T*) {
    const BackwardRows<T> rows{dy.data<T>(),           x.data<T>(), weight.data<T>(),       rstd.data<float>(),
                               gradients.dx.data<T>(), hidden,      gradients.accumulate_dx};
    parallel_for(blocks, 1, [&, sums = partial.data<float>()](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block)
        backward_rows(rows, sums + block * hidden, block * block_rows, std::min((block + 1) * block_rows, tokens));
    });
  });
  if (blocks == 0 || !gradients.dweight.defined()) return;
  Tensor total = partial.rows(0, 1);
  for (int64_t block = 1; block < blocks; ++block) add_to(total, partial.rows(block, 1));
  add_to(gradients.dweight, total);
}

}  // namespace trainyard::ops::cpu
