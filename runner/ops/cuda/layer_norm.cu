#include "ops/cuda/columns.cuh"
#include "ops/cuda/kernels.h"

namespace trainyard::ops::cuda {
namespace {

template <typename T>
struct CenteredRows {
  const T *x, *weight, *bias;
  T* y;
  float *mean, *rstd;
  int64_t hidden;
  float eps;
};

/// A block a row, in three passes over it: the variance around the mean, since E[x²] − mean² would lose what the two
/// have in common.
template <int kCount, typename T>
__global__ void __launch_bounds__(kThreads) layer_norm_kernel(CenteredRows<T> rows) {
  const int64_t row = blockIdx.x, begin = row * rows.hidden, packs = rows.hidden / kCount;
  const auto width = static_cast<float>(rows.hidden);
  float sum = 0, squares = 0;
  for (int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
    const auto x = load<kCount>(rows.x + begin, i);
    for (int k = 0; k < kCount; ++k) sum += to_float(x.values[k]);
  }
  const float mean = block_sum(sum) / width;
  for (int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
    const auto x = load<kCount>(rows.x + begin, i);
    for (int k = 0; k < kCount; ++k) squares += (to_float(x.values[k]) - mean) * (to_float(x.values[k]) - mean);
  }
  const float rstd = 1.0F / sqrtf(block_sum(squares) / width + rows.eps);
  for (int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
    auto x = load<kCount>(rows.x + begin, i);
    const auto weight = load<kCount>(rows.weight, i), bias = load<kCount>(rows.bias, i);
    for (int k = 0; k < kCount; ++k)
      x.values[k] =
          from_float<T>((to_float(x.values[k]) - mean) * rstd * to_float(weight.values[k]) + to_float(bias.values[k]));
    store<kCount>(rows.y + begin, i, x);
  }
  if (threadIdx.x == 0) rows.mean[row] = mean, rows.rstd[row] = rstd;
}

template <typename T>
struct CenteredGradients {
  const T *dy, *x, *weight;
  const float *mean, *rstd;
  T* dx;
  int64_t hidden;
};

template <int kCount, typename T>
__global__ void __launch_bounds__(kThreads) layer_norm_backward_kernel(CenteredGradients<T> rows) {
  const int64_t row = blockIdx.x, begin = row * rows.hidden, packs = rows.hidden / kCount;
  const auto width = static_cast<float>(rows.hidden);
  const float mean = rows.mean[row], rstd = rows.rstd[row];
  float sum = 0, along = 0;
  for (int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
    const auto dy = load<kCount>(rows.dy + begin, i), x = load<kCount>(rows.x + begin, i),
               weight = load<kCount>(rows.weight, i);
    for (int k = 0; k < kCount; ++k) {
      const float g = to_float(dy.values[k]) * to_float(weight.values[k]);
      sum += g;
      along += g * (to_float(x.values[k]) - mean) * rstd;
    }
  }
  sum = block_sum(sum) / width;
  along = block_sum(along) / width;
  for (int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
    const auto dy = load<kCount>(rows.dy + begin, i), weight = load<kCount>(rows.weight, i);
    auto x = load<kCount>(rows.x + begin, i);
    for (int k = 0; k < kCount; ++k) {
      const float n = (to_float(x.values[k]) - mean) * rstd;
      x.values[k] = from_float<T>(rstd * (to_float(dy.values[k]) * to_float(weight.values[k]) - sum - n * along));
    }
    store<kCount>(rows.dx + begin, i, x);
  }
}

template <typename T>
struct WeightGradient {
  const T *dy, *x;
  const float *mean, *rstd;
  int64_t hidden;
  __device__ float operator()(int64_t row, int64_t column) const {
    const int64_t at = row * hidden + column;
    return to_float(dy[at]) * (to_float(x[at]) - mean[row]) * rstd[row];
  }
};

}  // namespace

void layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, float eps, Tensor& y, RowMoments& moments) {
  if (x.size(0) == 0) return;
  with_element(x.dtype(), [&]<typename T>(T*) {
    const CenteredRows<T> rows{.x = elements<T>(x),
                               .weight = elements<T>(weight),
                               .bias = elements<T>(bias),
                               .y = elements<T>(y),
                               .mean = elements<float>(moments.mean),
                               .rstd = elements<float>(moments.rstd),
                               .hidden = x.size(1),
                               .eps = eps};
    with_packs(
        rows.hidden % kWide<T> == 0,
        [&](auto width) {
          launch("layer_norm", x.device(), grid_of_rows(x.size(0), rows.hidden / width.value),
                 layer_norm_kernel<width.value, T>, rows);
        },
        rows.x, rows.weight, rows.bias, rows.y);
  });
}

void layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const RowMoments& moments,
                         LayerNormGradients& gradients) {
  if (x.size(0) == 0) return;
  with_element(x.dtype(), [&]<typename T>(T*) {
    const CenteredGradients<T> rows{.dy = elements<T>(dy),
                                    .x = elements<T>(x),
                                    .weight = elements<T>(weight),
                                    .mean = elements<float>(moments.mean),
                                    .rstd = elements<float>(moments.rstd),
                                    .dx = elements<T>(gradients.dx),
                                    .hidden = x.size(1)};
    // First, as dx may be written over dy.
    add_column_sums("layer_norm_backward", x.size(0),
                    WeightGradient<T>{rows.dy, rows.x, rows.mean, rows.rstd, rows.hidden}, gradients.dweight);
    add_column_sums("layer_norm_backward", x.size(0), ColumnOf<T>{rows.dy, rows.hidden}, gradients.dbias);
    with_packs(
        rows.hidden % kWide<T> == 0,
        [&](auto width) {
          launch("layer_norm_backward", x.device(), grid_of_rows(x.size(0), rows.hidden / width.value),
                 layer_norm_backward_kernel<width.value, T>, rows);
        },
        rows.dy, rows.x, rows.weight, rows.dx);
  });
}

}  // namespace trainyard::ops::cuda
