#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace trainyard {

enum class DType : uint8_t { Float32, BFloat16, Float64, Int32, Int64, UInt8 };

/// Bytes of one element.
constexpr size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::Float64:
    case DType::Int64:
      return 8;
    case DType::Float32:
    case DType::Int32:
      return 4;
    case DType::BFloat16:
      return 2;
    case DType::UInt8:
      return 1;
  }
  return 0;
}

constexpr bool is_floating(DType dtype) {
  return dtype == DType::Float32 || dtype == DType::BFloat16 || dtype == DType::Float64;
}

/// "float32", "bfloat16", … as PyTorch prints them.
std::string_view name_of(DType dtype);

/// The upper half of a float. Conversion rounds to nearest even, NaN stays NaN.
struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  explicit BFloat16(float value) {
    const auto full = std::bit_cast<uint32_t>(value);
    const bool is_nan = (full & 0x7fffffffU) > 0x7f800000U;
    bits = is_nan ? static_cast<uint16_t>((full >> 16U) | 0x40U)
                  : static_cast<uint16_t>((full + 0x7fffU + ((full >> 16U) & 1U)) >> 16U);
  }
  explicit operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16U); }
};
static_assert(sizeof(BFloat16) == 2);

/// The DType of a C++ element type, for checked access.
template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::Float32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::Float64;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::BFloat16;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::Int32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::Int64;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::UInt8;
};

}  // namespace trainyard
