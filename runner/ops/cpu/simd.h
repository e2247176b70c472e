#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "tensor/dtype.h"

// How a loop becomes one for this machine's vector unit: a kernel function is compiled for each level below and the
// loader picks one (an ifunc). What it calls must be inlined into it to be compiled along, hence TRAINYARD_INLINE; and
// it must hold no OpenMP region, whose body the compiler outlines for the baseline only: the split over threads is
// outside (parallel.h). clang 16 has no clones of function templates and takes the baseline.
#if defined(TRAINYARD_NO_MULTIVERSION) || defined(__clang__)
#define TRAINYARD_MULTIVERSION
#else
#define TRAINYARD_MULTIVERSION __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
#define TRAINYARD_INLINE [[gnu::always_inline]] inline

namespace trainyard::ops::cpu {

// Kernels are written once for every element type: load, compute in float, store.
template <typename T>
TRAINYARD_INLINE float to_float(T value) {
  return static_cast<float>(value);
}
template <typename T>
TRAINYARD_INLINE T from_float(float value) {
  return T(value);
}

/// `value` as it would be after a store in T and a load.
template <typename T>
TRAINYARD_INLINE float rounded_to(float value) {
  return to_float(from_float<T>(value));
}

/// e^x within 1.1 ulp for x <= 0, or above by no more than rounding, in a form that loops over it vectorise (libm's
/// call would not). Below -87.3, where the result would be less than the least normal float, it is 0. NaN stays NaN. x
/// = n ln 2 + r by Cody and Waite's reduction, e^r by the polynomial of Cephes' expf.
TRAINYARD_INLINE float exp_nonpositive(float x) {
  constexpr float kLeast = -87.33654F;
  constexpr float kToInteger = 12582912.0F + 127.0F;  // 1.5 * 2^23: leaves n + 127 in the low bits of the sum
  const float clamped = x < kLeast ? kLeast : x;
  const float shifted = clamped * 1.44269504F + kToInteger;
  const float n = shifted - kToInteger;
  const float r = (clamped - n * 0.693359375F) - n * -2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  const float e_r = p * (r * r) + r + 1.0F;
  const float result = e_r * std::bit_cast<float>(std::bit_cast<uint32_t>(shifted) << 23U);
  return x < kLeast ? 0.0F : result;
}

/// 1 / (1 + e^-x) by e^-|x|, which cannot overflow.
TRAINYARD_INLINE float sigmoid(float x) {
  const float e = exp_nonpositive(-__builtin_fabsf(x));
  return (x < 0 ? e : 1.0F) / (1.0F + e);
}

}  // namespace trainyard::ops::cpu
