#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.cuh"
#include "ops/dropout_mask.h"
#include "ops/elements.h"

namespace trainyard::ops::cuda {
namespace {

template <typename T>
struct Dropped {
  const T* x;
  T* y;
  DropoutTokens tokens;
  int64_t width;
  uint32_t first_column;
  uint64_t seed;
  DropoutRate rate;
};

/// A block a token: its stream of random numbers is set up once.
template <int kCount, typename T>
__global__ void __launch_bounds__(kThreads) dropout_kernel(Dropped<T> work) {
  const int64_t token = blockIdx.x;
  const DropoutStream stream = work.tokens.stream(work.seed, token);
  for (int64_t i = threadIdx.x; i < work.width / kCount; i += blockDim.x) {
    auto values = load<kCount>(work.x + token * work.width, i);
    for (int k = 0; k < kCount; ++k) {
      const uint32_t bits = dropout_bits(stream, work.first_column + static_cast<uint32_t>(i * kCount + k));
      const float factor = bits < work.rate.threshold ? 0.0F : work.rate.scale;
      values.values[k] = from_float<T>(to_float(values.values[k]) * factor);
    }
    store<kCount>(work.y + token * work.width, i, values);
  }
}

}  // namespace

void dropout(const Tensor& x, const Dropout& dropout, Tensor& y) {
  if (x.count() == 0) return;
  const int64_t rows = dropout.sequences.count();
  with_element(x.dtype(), [&]<typename T>(T*) {
    const Dropped<T> work{.x = elements<T>(x),
                          .y = elements<T>(y),
                          .tokens = {elements<int64_t>(dropout.sequences), rows,
                                     dropout.tokens > 0 ? dropout.tokens : x.size(0) / rows, dropout.first_token},
                          .width = x.size(1),
                          .first_column = static_cast<uint32_t>(dropout.first_column),
                          .seed = dropout.seed,
                          .rate = DropoutRate(dropout.rate)};
    with_packs(
        work.width % kWide<T> == 0,
        [&](auto width) {
          launch("dropout", x.device(), grid_of_rows(x.size(0), work.width / width.value),
                 dropout_kernel<width.value, T>, work);
        },
        work.x, work.y);
  });
}

}  // namespace trainyard::ops::cuda
