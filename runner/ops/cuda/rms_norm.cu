#include "ops/cuda/columns.cuh"
#include "ops/cuda/kernels.h"

namespace trainyard::ops::cuda {
namespace {

template <typename T>
struct Rows {
  const T *x, *residual, *weight;  ///< residual: of add_rms_norm, else null
  T *sum, *y;
  float* rstd;
  int64_t hidden;
  float eps;
};

/// A block a row. kAdds: normalises x + residual, which it keeps, rounded, in `sum`.
template <int kCount, bool kAdds, typename T>
__global__ void __launch_bounds__(kThreads) rms_norm_kernel(Rows<T> rows) {
  const int64_t row = blockIdx.x, begin = row * rows.hidden, packs = rows.hidden / kCount;
  const T* const x = (kAdds ? rows.sum : rows.x) + begin;
  float squares = 0;
  for (int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
    auto pack = load<kCount>(rows.x + begin, i);
    if constexpr (kAdds) {
      const auto other = load<kCount>(rows.residual + begin, i);
      for (int k = 0; k < kCount; ++k)
        pack.values[k] = from_float<T>(to_float(pack.values[k]) + to_float(other.values[k]));
      store<kCount>(rows.sum + begin, i, pack);
    }
    for (int k = 0; k < kCount; ++k) squares += to_float(pack.values[k]) * to_float(pack.values[k]);
  }
  const float rstd = 1.0F / sqrtf(block_sum(squares) / static_cast<float>(rows.hidden) + rows.eps);
  for (int64_t i = threadIdx.x; i < packs;
       i += blockDim.x) {  // a thread reads again what it has read or written itself
    auto pack = load<kCount>(x, i);
    const auto weight = load<kCount>(rows.weight, i);
    for (int k = 0; k < kCount; ++k)
      pack.values[k] = from_float<T>(to_float(weight.values[k]) * rounded_to<T>(to_float(pack.values[k]) * rstd));
    store<kCount>(rows.y + begin, i, pack);
  }
  if (threadIdx.x == 0) rows.rstd[row] = rstd;
}

template <typename T>
struct BackwardRows {
  const T *dy, *x, *weight;
  const float* rstd;
  T* dx;
  int64_t hidden;
  bool accumulate;
};

template <int kCount, typename T>
__global__ void __launch_bounds__(kThreads) rms_norm_backward_kernel(BackwardRows<T> rows) {
  const int64_t row = blockIdx.x, begin = row * rows.hidden, packs = rows.hidden / kCount;
  const float rstd = rows.rstd[row];
  float dot = 0;
  for (int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
    const auto dy = load<kCount>(rows.dy + begin, i), x = load<kCount>(rows.x + begin, i),
               weight = load<kCount>(rows.weight, i);
    for (int k = 0; k < kCount; ++k) dot += to_float(dy.values[k]) * to_float(weight.values[k]) * to_float(x.values[k]);
  }
  const float along_x = block_sum(dot) * rstd * rstd * rstd / static_cast<float>(rows.hidden);
  for (int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
    const auto dy = load<kCount>(rows.dy + begin, i), x = load<kCount>(rows.x + begin, i),
               weight = load<kCount>(rows.weight, i);
    auto dx = load<kCount>(rows.dx + begin, i);
    for (int k = 0; k < kCount; ++k) {
      const float gradient =
          rstd * to_float(dy.values[k]) * to_float(weight.values[k]) - along_x * to_float(x.values[k]);
      dx.values[k] = from_float<T>(rows.accumulate ? to_float(dx.values[k]) + gradient : gradient);
    }
    store<kCount>(rows.dx + begin, i, dx);
  }
}

template <typename T>
struct WeightGradient {
  const T *dy, *x;
  const float* rstd;
  int64_t hidden;
  __device__ float operator()(int64_t row, int64_t column) const {
    const int64_t at = row * hidden + column;
    return to_float(dy[at]) * rounded_to<T>(to_float(x[at]) * rstd[row]);
  }
};

template <bool kAdds, typename T>
void normalize(const char* name, const Tensor& x, const Rows<T>& rows) {
  if (x.size(0) == 0) return;
  with_packs(
      rows.hidden % kWide<T> == 0,
      [&](auto width) {
        launch(name, x.device(), grid_of_rows(x.size(0), rows.hidden / width.value),
               rms_norm_kernel<width.value, kAdds, T>, rows);
      },
      rows.x, rows.residual, rows.weight, rows.sum, rows.y);
}

}  // namespace

void rms_norm(const Tensor& x, const Tensor& weight, float eps, Tensor& y, Tensor& rstd) {
  with_element(x.dtype(), [&]<typename T>(T*) {
    normalize<false>("rms_norm", x,
                     Rows<T>{.x = elements<T>(x),
                             .residual = nullptr,
                             .weight = elements<T>(weight),
                             .sum = nullptr,
                             .y = elements<T>(y),
                             .rstd = elements<float>(rstd),
                             .hidden = x.size(1),
                             .eps = eps});
  });
}

void add_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& weight, float eps, Tensor& sum, Tensor& y,
                  Tensor& rstd) {
  with_element(x.dtype(), [&]<typename T>(T*) {
    normalize<true>("add_rms_norm", x,
                    Rows<T>{.x = elements<T>(x),
                            .residual = elements<T>(residual),
                            .weight = elements<T>(weight),
                            .sum = elements<T>(sum),
                            .y = elements<T>(y),
                            .rstd = elements<float>(rstd),
                            .hidden = x.size(1),
                            .eps = eps});
  });
}

void rms_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                       RmsNormGradients& gradients) {
  if (x.size(0) == 0) return;
  with_element(x.dtype(), [&]<typename T>(T*) {
    // First, as dx may be written over dy.
    if (gradients.dweight.defined())
      add_column_sums("rms_norm_backward", x.size(0),
                      WeightGradient<T>{elements<T>(dy), elements<T>(x), elements<float>(rstd), x.size(1)},
                      gradients.dweight);
    const BackwardRows<T> rows{.dy = elements<T>(dy),
                               .x = elements<T>(x),
                               .weight = elements<T>(weight),
                               .rstd = elements<float>(rstd),
                               .dx = elements<T>(gradients.dx),
                               .hidden = x.size(1),
                               .accumulate = gradients.accumulate_dx};
    with_packs(
        rows.hidden % kWide<T> == 0,
        [&](auto width) {
          launch("rms_norm_backward", x.device(), grid_of_rows(x.size(0), rows.hidden / width.value),
                 rms_norm_backward_kernel<width.value, T>, rows);
        },
        rows.dy, rows.x, rows.weight, rows.dx);
  });
}

}  // namespace trainyard::ops::cuda
