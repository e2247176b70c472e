#pragma once

#include <bit>
#include <cstdint>

#include "ops/dropout_mask.h"
#include "tensor/half.h"

// How AdamW rounds moments that are kept in bfloat16, for the kernels of every device: up as often as the value is near
// to the upper neighbour. So many small additions are not lost that rounding to the nearest would lose one by one.
namespace trainyard::ops {

/// The random bits of one tensor in one step.
constexpr DropoutStream rounding_stream(uint64_t seed, int64_t step) {
  return {seed, step, 0};
}

/// `value` itself where T is float; a bfloat16 by 16 random bits, the low ones of `random`.
template <typename T>
[[gnu::always_inline]] constexpr T rounded_stochastically(float value, uint32_t random) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return value;
  } else {
    const auto full = std::bit_cast<uint32_t>(value);
    const bool is_finite = (full & 0x7f800000U) != 0x7f800000U;
    const uint32_t moved = is_finite ? full + (random & 0xffffU) : full | (full & 0xffffU ? 0x400000U : 0U);
    return T(std::bit_cast<float>(moved & 0xffff0000U));  // which T has
  }
}

}  // namespace trainyard::ops
