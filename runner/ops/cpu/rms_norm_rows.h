#pragma once

#include "ops/cpu/simd.h"

// The loops of rms_norm and its way back, for kernels that are compiled for each instruction set (simd.h).
namespace trainyard::ops::cpu {

template <typename T>
struct NormRows {
  const T *x, *weight;
  T* y;
  float* rstd;
  int64_t hidden;
  float eps;
};

template <typename T>
TRAINYARD_INLINE float inverse_rms(const T* x, int64_t count, float eps) {
  float squares = 0;
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < count; ++i) squares += to_float(x[i]) * to_float(x[i]);
  return 1.0F / __builtin_sqrtf(squares / static_cast<float>(count) + eps);
}

template <typename T>
TRAINYARD_INLINE void normalize_row(const NormRows<T>& rows, const T* x, int64_t row) {
  const float rstd = inverse_rms(x, rows.hidden, rows.eps);
  const T* const weight = rows.weight;
  T* const y = rows.y + row * rows.hidden;
  const int64_t hidden = rows.hidden;
#pragma omp simd
  for (int64_t i = 0; i < hidden; ++i) y[i] = from_float<T>(to_float(weight[i]) * rounded_to<T>(to_float(x[i]) * rstd));
  rows.rstd[row] = rstd;
}

template <typename T>
struct NormBackwardRows {
  const T *dy, *x, *weight;
  const float* rstd;
  T* dx;
  int64_t hidden;
  bool accumulate;
};

/// Adds the rows' share of dweight to `dweight` [hidden].
template <bool kAccumulate, typename T>
TRAINYARD_INLINE void backward_rows_to(const NormBackwardRows<T>& rows, float* __restrict dweight, int64_t begin,
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

}  // namespace trainyard::ops::cpu
