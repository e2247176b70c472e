#pragma once

#include <bit>
#include <cstdint>

// The two 16-bit floating-point types, as storage: arithmetic is done in float. The conversions hold no branch, so that
// loops over them vectorise, and are inlined always, so that they are compiled along with a kernel for its instruction
// set; constexpr, so that a device's compiler takes them too. Both round to nearest, ties to even; NaN stays NaN.
namespace trainyard {

/// The upper half of a float: its range with 8 bits of precision.
struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  [[gnu::always_inline]] constexpr explicit BFloat16(float value) {
    const auto full = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = full + 0x7fffU + ((full >> 16U) & 1U);
    const uint32_t quiet_nan = full | 0x400000U;
    const bool is_nan = value != value;  // one instruction of a vector unit, where comparing the bits takes two
    bits = static_cast<uint16_t>((is_nan ? quiet_nan : rounded) >> 16U);
  }
  [[gnu::always_inline]] constexpr explicit operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16U);
  }
};
static_assert(sizeof(BFloat16) == 2);

/// IEEE 754 binary16: 11 bits of precision from 2^-14 to 65504, fewer below, down to 2^-24. From 65520 on a float
/// becomes infinity.
struct Float16 {
  uint16_t bits = 0;

  Float16() = default;
  [[gnu::always_inline]] constexpr explicit Float16(float value) {
    const auto full = std::bit_cast<uint32_t>(value);
    const uint32_t magnitude = full & 0x7fffffffU;
    const uint32_t rounded = (magnitude - kRebias + 0xfffU + ((magnitude >> 13U) & 1U)) >> 13U;
    const uint32_t normal = rounded < kInfinity ? rounded : kInfinity;
    // Added to 0.5, whose last bit is worth 2^-24, a small value is rounded to that by the addition itself.
    const uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3f000000U;
    const uint32_t quiet_nan = kInfinity | 0x200U | ((magnitude >> 13U) & 0x3ffU);
    const uint32_t finite = magnitude < kLeastNormal ? subnormal : normal;
    bits = static_cast<uint16_t>((full >> 16U & 0x8000U) | (magnitude > 0x7f800000U ? quiet_nan : finite));
  }
  [[gnu::always_inline]] constexpr explicit operator float() const {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000U) << 16U, magnitude = bits & 0x7fffU;
    const uint32_t normal = (magnitude << 13U) + kRebias;
    const uint32_t special = normal + kRebias;  // the exponent is 31 here and must become 255
    const uint32_t quiet = magnitude > kInfinity ? 0x400000U : 0U;
    const auto subnormal = std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24F);
    const uint32_t finite = magnitude < 0x400U ? subnormal : normal;
    return std::bit_cast<float>(sign | (magnitude >= kInfinity ? special | quiet : finite));
  }

 private:
  static constexpr uint32_t kRebias = (127U - 15U) << 23U;  ///< between the two formats' exponents
  static constexpr uint32_t kLeastNormal = kRebias + (1U << 23U);
  static constexpr uint32_t kInfinity = 0x7c00U;
};
static_assert(sizeof(Float16) == 2);

}  // namespace trainyard
