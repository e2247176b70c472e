#pragma once

#include "ops/cpu/simd.h"
#include "ops/rope.h"

// The loop of rope, for kernels that are compiled for each instruction set (simd.h).
namespace trainyard::ops::cpu {

template <typename T>
struct TurnedHeads {
  const T* x;
  T* out;
  const float *cos, *sin;  ///< of position 0
  const int32_t* positions;
  int64_t heads, half;
  float direction;  ///< 1, or −1 for the inverse

  TurnedHeads(const T* from, T* to, const RopeTables& tables, const Tensor& places, int64_t width, Rotation rotation)
      : x(from),
        out(to),
        cos(tables.cos.data<float>()),
        sin(tables.sin.data<float>()),
        positions(places.data<int32_t>()),
        heads(width / (2 * tables.cos.size(1))),
        half(tables.cos.size(1)),
        direction(rotation == Rotation::Inverse ? -1.0F : 1.0F) {}
};

/// Both halves are read before either is written, so out may be x.
template <typename T>
TRAINYARD_INLINE void rotate_tokens(const TurnedHeads<T>& work, int64_t begin, int64_t end) {
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

}  // namespace trainyard::ops::cpu
