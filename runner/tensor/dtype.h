#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tensor/float8.h"
#include "tensor/half.h"

namespace trainyard {

enum class DType : uint8_t { Float32, BFloat16, Float16, Float8E4M3, Float8E5M2, Float64, Int32, Int64, UInt8 };

/// All of them.
inline constexpr DType kDTypes[] = {DType::Float32,    DType::BFloat16,   DType::Float16,
                                    DType::Float8E4M3, DType::Float8E5M2, DType::Float64,
                                    DType::Int32,      DType::Int64,      DType::UInt8};

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
    case DType::Float16:
      return 2;
    case DType::Float8E4M3:
    case DType::Float8E5M2:
    case DType::UInt8:
      return 1;
  }
  return 0;
}

/// What the ops compute on: sums are float32 whatever the elements are.
constexpr bool is_computed(DType dtype) {
  return dtype == DType::Float32 || dtype == DType::BFloat16 || dtype == DType::Float16;
}

/// What products take beside those, with a scale (ops/float8.h).
constexpr bool is_float8(DType dtype) {
  return dtype == DType::Float8E4M3 || dtype == DType::Float8E5M2;
}

constexpr bool is_floating(DType dtype) {
  return is_computed(dtype) || is_float8(dtype) || dtype == DType::Float64;
}

/// "float32", "bfloat16", … as PyTorch prints them.
std::string_view name_of(DType dtype);

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
struct DTypeOf<Float16> {
  static constexpr DType value = DType::Float16;
};
template <>
struct DTypeOf<Float8E4M3> {
  static constexpr DType value = DType::Float8E4M3;
};
template <>
struct DTypeOf<Float8E5M2> {
  static constexpr DType value = DType::Float8E5M2;
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
