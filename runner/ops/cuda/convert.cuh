#pragma once

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#endif

#include <type_traits>

#include "tensor/float8.h"
#include "tensor/half.h"

// The conversions of tensor/half.h and tensor/float8.h by a device's own instructions, of which each takes one where
// those take ten: the same values, bit for bit; only NaN may have another payload.
namespace trainyard::ops::cuda {

template <typename T>
__device__ inline float to_float(T value) {
#ifdef __CUDA_ARCH__
  if constexpr (std::is_same_v<T, Float16>)
    return __half2float(__ushort_as_half(value.bits));
  else
#endif
    return static_cast<float>(value);
}

template <typename T>
__device__ inline T from_float(float value) {
#ifdef __CUDA_ARCH__
  if constexpr (std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>) {
    T made;
    if constexpr (std::is_same_v<T, BFloat16>)
      made.bits = __bfloat16_as_ushort(__float2bfloat16_rn(value));
    else
      made.bits = __half_as_ushort(__float2half_rn(value));
    return made;
  } else
#endif
    return T(value);
}

/// A value of a type of 8 bits: the largest of its sign where `value` is beyond that.
template <typename T>
__device__ inline T from_float_within_range(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  T made;
  made.bits = __nv_cvt_float_to_fp8(value, __NV_SATFINITE, std::is_same_v<T, Float8E4M3> ? __NV_E4M3 : __NV_E5M2);
  return made;
#else
  return T(T::within_range(value));
#endif
}

}  // namespace trainyard::ops::cuda
