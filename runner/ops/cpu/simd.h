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

TRAINYARD_INLINE float to_float(float value) { return value; }
TRAINYARD_INLINE float to_float(BFloat16 value) { return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16U); }

template <typename T>
TRAINYARD_INLINE T from_float(float value);

template <>
TRAINYARD_INLINE float from_float<float>(float value) {
  return value;
}

template <>
TRAINYARD_INLINE BFloat16 from_float<BFloat16>(float value) {  // BFloat16(float), without its branch
  const auto full = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (full + 0x7fffU + ((full >> 16U) & 1U)) >> 16U;
  const uint32_t quiet_nan = (full >> 16U) | 0x40U;
  BFloat16 result;
  result.bits = static_cast<uint16_t>((full & 0x7fffffffU) > 0x7f800000U ? quiet_nan : rounded);
  return result;
}

/// `value` as it would be after a store in T and a load.
template <typename T>
TRAINYARD_INLINE float rounded_to(float value) {
  return to_float(from_float<T>(value));
}

/// e^r and the integer n as the bits of a float: the two parts of e^x = e^r * 2^n with |r| <= ln 2 / 2 (Cody and Waite's
/// reduction, the polynomial of Cephes' expf). `n_bits` holds n + bias in its low bits.
struct ExpParts {
  float e_r;
  uint32_t n_bits;
};

template <int kBias>
TRAINYARD_INLINE ExpParts exp_parts(float x) {
  constexpr float kToInteger = 12582912.0F + kBias;  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
  const float shifted = x * 1.44269504F + kToInteger;
  const float n = shifted - kToInteger;
  const float r = (x - n * 0.693359375F) - n * -2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  return {p * (r * r) + r + 1.0F, std::bit_cast<uint32_t>(shifted)};
}

constexpr float kLeastExponent = -87.33654F;  ///< e^x of less is below the least normal float, and flushed to 0
constexpr float kMostExponent = 88.72283F;    ///< e^x of more is infinite

/// e^x within 1.1 ulp, in a form that loops over it vectorise (libm's call would not). NaN stays NaN.
TRAINYARD_INLINE float exp(float x) {
  const ExpParts parts = exp_parts<0>(x < kLeastExponent ? kLeastExponent : (x > kMostExponent ? kMostExponent : x));
  // 2^n in two halves, since 2^128 has no float of its own. The shifts drop the upper bits of 1.5 * 2^23.
  const int32_t n = static_cast<int32_t>(parts.n_bits << 9U) >> 9;
  const int32_t half = n >> 1;
  const float result = parts.e_r * std::bit_cast<float>((half + 127) << 23) * std::bit_cast<float>((n - half + 127) << 23);
  return x < kLeastExponent ? 0.0F : (x > kMostExponent ? __builtin_inff() : result);
}

/// exp for x <= 0, or above by no more than rounding: half the work. Softmax needs no other.
TRAINYARD_INLINE float exp_nonpositive(float x) {
  const ExpParts parts = exp_parts<127>(x < kLeastExponent ? kLeastExponent : x);
  const float result = parts.e_r * std::bit_cast<float>(parts.n_bits << 23U);
  return x < kLeastExponent ? 0.0F : result;
}

/// For large negative x, exp(-x) is infinite and the quotient 0.
TRAINYARD_INLINE float sigmoid(float x) { return 1.0F / (1.0F + exp(-x)); }

}  // namespace trainyard::ops::cpu
