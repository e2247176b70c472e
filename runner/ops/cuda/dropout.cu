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
  const int64_t* sequences;
  int64_t tokens, width;  ///< of a row of the batch, of a token
  uint64_t seed;
  DropoutRate rate;
};

/// A block a token: its stream of random numbers is set up once.
template <int kCount, typename T>
__global__ void __launch_bounds__(kThreads) dropout_kernel(Dropped<T> work) {
  const int64_t token = blockIdx.x;
  const DropoutStream stream(work.seed, work.sequences[token / work.tokens],
                             static_cast<uint64_t>(token % work.tokens));
  for (int64_t i = threadIdx.x; i < work.width / kCount; i += blockDim.x) {
    auto values = load<kCount>(work.x + token * work.width, i);
    for (int k = 0; k < kCount; ++k) {
      const uint32_t bits = dropout_bits(stream, static_cast<uint32_t>(i * kCount + k));
      const float factor = bits < work.rate.threshold ? 0.0F : work.rate.scale;
      values.values[k] = from_float<T>(to_float(values.values[k]) * factor);
    }
    store<kCount>(work.y + token * work.width, i, values);
  }
}

}  // namespace

void dropout(const Tensor& x, const Dropout& dropout, Tensor& y) {
  if (x.count() == 0) return;
  with_element(x.dtype(), [&]<typename T>(T*) {
    const Dropped<T> work{.x = elements<T>(x),
                          .y = elements<T>(y),
                          .sequences = elements<int64_t>(dropout.sequences),
                          .tokens = x.size(0) / dropout.sequences.count(),
                          .width = x.size(1),
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
