#include "ops/cpu/kernels.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/simd.h"
#include "ops/elements.h"

namespace trainyard::ops::cpu {
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

/// Both halves are read before either is written, so out may be x.
template <typename T>
TRAINYARD_MULTIVERSION void rotate(const Heads<T>& work, int64_t begin, int64_t end) {
  const int64_t half = work.half;
  const float direction = work.direction;
  for (int64_t token = begin; token < end; ++token) {
    const float *const cos = work.cos + work.positions[token] * half, *const sin =
                                                                          work.sin + work.positions[token] * half;
    for (int64_t head = 0; head < work.heads; ++head) {
      const T* const x = work.x + (token * work.heads + head) * 2 * half;
      T* const out = work.out + (token * work.heads + head) * 2 * half;
#pragma omp simd
      for (int64_t i = 0; i < half; ++i) {
        const float c = rounded_to<T>(cos[i]), s = rounded_to<T>(sin[i]) * direction;
        const float first = to_float(x[i]), second = to_float(x[i + half]);
        out[i] = from_float<T>(first * c - second * s);
        out[i + half] = from_float<T>(second * c + first * s);
      }
    }
  }
}

}  // namespace

void rope(const Tensor& x, const Tensor& positions, const RopeTables& tables, Rotation rotation, Tensor& out) {
  const int64_t half = tables.cos.size(1), heads = x.size(1) / (2 * half);
  with_element(x.dtype(), [&]<typename T>(T*) {
    const Heads<T> work{x.data<T>(),
                        out.data<T>(),
                        tables.cos.data<float>(),
                        tables.sin.data<float>(),
                        positions.data<int32_t>(),
                        heads,
                        half,
                        rotation == Rotation::Inverse ? -1.0F : 1.0F};
    parallel_for(x.size(0), rows_grain(x.size(1)), [&](int64_t begin, int64_t end) { rotate(work, begin, end); });
  });
}

}  // namespace trainyard::ops::cpu
