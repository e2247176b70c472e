#include <catch2/catch.hpp>

#include <bit>
#include <cmath>
#include <limits>

#include "tensor/convert.h"

namespace trainyard {
namespace {

constexpr uint32_t kPatterns = 1U << 16U;

template <typename T>
T of_bits(uint32_t bits) {
  T value;
  value.bits = static_cast<uint16_t>(bits);
  return value;
}

/// Value of a finite pattern from the format's definition: `mantissa` stored bits of precision, exponents from `bias`.
double defined_value(uint32_t bits, int mantissa, int bias) {
  const uint32_t fraction = bits & ((1U << mantissa) - 1U);
  const int exponent = static_cast<int>((bits & 0x7fffU) >> mantissa);
  const double magnitude = exponent == 0 ? std::ldexp(fraction, 1 - bias - mantissa)
                                         : std::ldexp((1U << mantissa) + fraction, exponent - bias - mantissa);
  return bits & 0x8000U ? -magnitude : magnitude;
}

/// How many patterns do not convert to what the format defines and back to themselves; of NaN the sign must stay.
template <typename T>
int wrong_patterns(int mantissa, int bias) {
  int wrong = 0;
  for (uint32_t bits = 0; bits < kPatterns; ++bits) {
    const auto value = static_cast<float>(of_bits<T>(bits));
    const uint32_t back = T(value).bits, all_ones = ((1U << (15 - mantissa)) - 1U) << mantissa;
    if ((bits & 0x7fffU) > all_ones) {
      wrong += !std::isnan(value) || std::signbit(value) != (bits >= 0x8000U) || (back & 0x7fffU) <= all_ones;
    } else if ((bits & 0x7fffU) == all_ones) {
      wrong += !std::isinf(value) || back != bits;
    } else {
      wrong += static_cast<double>(value) != defined_value(bits, mantissa, bias) || back != bits;
    }
  }
  return wrong;
}

/// Rounding at every boundary: exactly between two neighbours to the even one, a float's last bit off to the nearer.
/// `above_largest` is what the next pattern after the largest finite one would be worth: from the middle on, infinity.
template <typename T>
int wrong_roundings(uint32_t infinity, double above_largest) {
  int wrong = 0;
  for (uint32_t low = 0; low < infinity; ++low) {
    const double here = static_cast<float>(of_bits<T>(low));
    const double next = low + 1 == infinity ? above_largest : static_cast<float>(of_bits<T>(low + 1));
    const auto middle = static_cast<float>((here + next) / 2);  // exact: one bit more than the format has
    for (const float sign : {1.0F, -1.0F}) {
      const uint32_t sign_bit = sign < 0 ? 0x8000U : 0U;
      wrong += T(sign * middle).bits != (sign_bit | (low % 2 == 0 ? low : low + 1));
      wrong += T(sign * std::nextafter(middle, 0.0F)).bits != (sign_bit | low);
      wrong += T(sign * std::nextafter(middle, std::numeric_limits<float>::infinity())).bits != (sign_bit | (low + 1));
    }
  }
  return wrong;
}

}  // namespace

TEST_CASE("Float16: each of the 65,536 patterns is worth what IEEE 754 says, and comes back", "[tensor]") {
  CHECK(wrong_patterns<Float16>(10, 15) == 0);
}

TEST_CASE("BFloat16: each of the 65,536 patterns is the upper half of a float, and comes back", "[tensor]") {
  CHECK(wrong_patterns<BFloat16>(7, 127) == 0);
}

TEST_CASE("Float16: rounds to nearest even between all neighbours, subnormal ones too, and from 65520 on to infinity",
          "[tensor]") {
  CHECK(wrong_roundings<Float16>(0x7c00, 65536) == 0);
  CHECK(Float16(1e30F).bits == 0x7c00);
  CHECK(Float16(-std::numeric_limits<float>::infinity()).bits == 0xfc00);
  CHECK(Float16(std::numeric_limits<float>::denorm_min()).bits == 0);
  CHECK(Float16(-1e-30F).bits == 0x8000);
  CHECK(std::isnan(float(Float16(std::numeric_limits<float>::quiet_NaN()))));
}

TEST_CASE("BFloat16: rounds to nearest even between all normal neighbours, keeps NaN and infinity", "[tensor]") {
  CHECK(wrong_roundings<BFloat16>(0x7f80, 0x1p128) == 0);
  CHECK(std::isnan(float(BFloat16(std::numeric_limits<float>::quiet_NaN()))));
  CHECK(std::isnan(float(BFloat16(std::bit_cast<float>(0x7f800001U)))));  // all of its payload is cut off
  CHECK(std::isinf(float(BFloat16(std::numeric_limits<float>::max()))));
}

TEST_CASE("convert: between every two floating types, as the types themselves do, and others are refused", "[tensor]") {
  const std::vector<double> values{0, 1, -2.5, 65504, 1e-7, 3.14159265358979};
  const Tensor from = Tensor::from<double>(values, {6});
  const DType first = GENERATE(DType::Float32, DType::BFloat16, DType::Float16);
  const DType second = GENERATE(DType::Float32, DType::BFloat16, DType::Float16);
  const Tensor there = converted(converted(from, first), second), back = converted(there, DType::Float32);
  for (size_t i = 0; i < values.size(); ++i) {
    auto expected = static_cast<float>(values[i]);
    for (const DType dtype : {first, second}) {
      if (dtype == DType::BFloat16) expected = float(BFloat16(expected));
      if (dtype == DType::Float16) expected = float(Float16(expected));
    }
    CHECK(back.values<float>()[i] == expected);
  }
  CHECK_THROWS_WITH(converted(Tensor::zeros({1}, DType::Int32), first), Catch::Contains("int32 where floating point"));
  CHECK_THROWS_WITH(converted(Tensor::zeros({1}, first), DType::Float64), Catch::Contains("to float64"));
}

}  // namespace trainyard
