#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.cuh"
#include "ops/elements.h"

namespace trainyard::ops::cuda {
namespace {

template <typename T>
struct Heads {
  const T* x;
  T* out;
  const float *cos, *sin;  ///< of position 0
  const int32_t* positions;
  int64_t heads, half;
  float direction;  ///< 1, or −1 for the inverse
};

/// A block a token. Both halves are read before either is written, so out may be x.
template <int kCount, typename T>
__global__ void __launch_bounds__(kThreads) rope_kernel(Heads<T> work) {
  const int64_t token = blockIdx.x, packs = work.half / kCount;
  const float *const cos = work.cos + work.positions[token] * work.half, *const sin = work.sin +
                                                                                      work.positions[token] * work.half;
  for (int64_t i = threadIdx.x; i < work.heads * packs; i += blockDim.x) {
    const int64_t head = (token * work.heads + i / packs) * 2 * work.half, pack = i % packs;
    auto first = load<kCount>(work.x + head, pack), second = load<kCount>(work.x + head + work.half, pack);
    for (int k = 0; k < kCount; ++k) {
      const float c = rounded_to<T>(cos[pack * kCount + k]);
      const float s = rounded_to<T>(sin[pack * kCount + k]) * work.direction;
      const float a = to_float(first.values[k]), b = to_float(second.values[k]);
      first.values[k] = from_float<T>(a * c - b * s);
      second.values[k] = from_float<T>(b * c + a * s);
    }
    store<kCount>(work.out + head, pack, first);
    store<kCount>(work.out + head + work.half, pack, second);
  }
}

}  // namespace

void rope(const Tensor& x, const Tensor& positions, const RopeTables& tables, Rotation rotation, Tensor& out) {
  const int64_t half = tables.cos.size(1);
  if (x.count() == 0) return;
  with_element(x.dtype(), [&]<typename T>(T*) {
    const Heads<T> work{.x = elements<T>(x),
                        .out = elements<T>(out),
                        .cos = elements<float>(tables.cos),
                        .sin = elements<float>(tables.sin),
                        .positions = elements<int32_t>(positions),
                        .heads = x.size(1) / (2 * half),
                        .half = half,
                        .direction = rotation == Rotation::Inverse ? -1.0F : 1.0F};
    with_packs(
        half % kWide<T> == 0,
        [&](auto width) {
          launch("rope", x.device(), grid_of_rows(x.size(0), work.heads * half / width.value),
                 rope_kernel<width.value, T>, work);
        },
        work.x, work.out);
  });
}

}  // namespace trainyard::ops::cuda
