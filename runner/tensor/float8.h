#pragma once

#include <bit>
#include <cstdint>

// The two 8-bit floating-point types of training (Micikevicius et al. 2022, the Open Compute Project's OFP8), as
// storage, with the conversions of tensor/half.h: no branch, inlined always, constexpr, to nearest, ties to even, and
// bit for bit those of PyTorch. A value past the largest becomes what the type has for that; within_range() is for
// those who want the largest.
namespace trainyard {

/// What the two have in common; `kBeyond` is the pattern of what is too large: from there on nothing is finite.
template <int kMantissaBits, int kBias, uint32_t kBeyond>
struct Float8 {
  uint8_t bits = 0;

  Float8() = default;
  [[gnu::always_inline]] constexpr explicit Float8(float value) {
    const auto full = std::bit_cast<uint32_t>(value);
    const uint32_t magnitude = full & 0x7fffffffU;
    const uint32_t half_less_one = (1U << (kShift - 1U)) - 1U;
    const uint32_t rounded = (magnitude - kRebias + half_less_one + ((magnitude >> kShift) & 1U)) >> kShift;
    const uint32_t normal = rounded < kBeyond ? rounded : kBeyond;
    // Added to a number whose last bit is worth the least subnormal, a small value is rounded to that by the addition.
    const uint32_t subnormal =
        std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + std::bit_cast<float>(kRounder)) - kRounder;
    const uint32_t finite = magnitude < kLeastNormal ? subnormal : normal;
    bits = static_cast<uint8_t>((full >> 24U & 0x80U) | (magnitude > 0x7f800000U ? 0x7fU : finite));
  }
  [[gnu::always_inline]] constexpr explicit operator float() const {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x80U) << 24U, magnitude = bits & 0x7fU;
    const uint32_t normal = (magnitude << kShift) + kRebias;
    const uint32_t special = magnitude == kBeyond && kBeyond != 0x7fU ? 0x7f800000U : 0x7fc00000U;
    const float least = std::bit_cast<float>(kLeastNormal - (static_cast<uint32_t>(kMantissaBits) << 23U));
    const auto subnormal = std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(magnitude)) * least);
    const uint32_t finite = magnitude < (1U << kMantissaBits) ? subnormal : normal;
    return std::bit_cast<float>(sign | (magnitude >= kBeyond ? special : finite));
  }

  /// The largest value there is.
  static constexpr float largest() {
    Float8 last;
    last.bits = kBeyond - 1;
    return static_cast<float>(last);
  }
  /// `value`, or the largest of its sign where it is beyond that. NaN stays NaN.
  [[gnu::always_inline]] static constexpr float within_range(float value) {
    const float below = value > largest() ? largest() : value;
    return below < -largest() ? -largest() : below;
  }

 private:
  static constexpr uint32_t kShift = 23U - kMantissaBits;
  static constexpr uint32_t kRebias = (127U - kBias) << 23U;  ///< between the two formats' exponents
  static constexpr uint32_t kLeastNormal = kRebias + (1U << 23U);
  static constexpr uint32_t kRounder = kLeastNormal + (kShift << 23U);
};

/// float8_e4m3fn: 4 bits of precision from 2^-6 to 448, fewer below, down to 2^-9. No infinity: NaN instead.
struct Float8E4M3 : Float8<3, 7, 0x7fU> {
  using Float8::Float8;
};
/// float8_e5m2: 3 bits of precision from 2^-14 to 57344, fewer below, down to 2^-16. From 61440 on infinity.
struct Float8E5M2 : Float8<2, 15, 0x7cU> {
  using Float8::Float8;
};
static_assert(sizeof(Float8E4M3) == 1 && sizeof(Float8E5M2) == 1);
static_assert(Float8E4M3::largest() == 448 && Float8E5M2::largest() == 57344);

}  // namespace trainyard
