#include "tensor/float8.h"

#include <catch2/catch.hpp>

#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "tensor/convert.h"

namespace trainyard {
namespace {

/// From this upper half of a float on, PyTorch rounds to `bits`.
struct Step {
  uint32_t upper;
  uint8_t bits;
};

#include "float8_table.inc"

struct Float8Reference {
  std::span<const uint32_t> values;  ///< the bits of the floats that patterns 0, 1, … are worth, up to the largest
  std::span<const Step> steps;
  uint8_t nan;
};

template <typename T>
Float8Reference float8_reference() {
  if constexpr (std::is_same_v<T, Float8E4M3>) return {kE4M3Values, kE4M3Steps, kE4M3Nan};
  return {kE5M2Values, kE5M2Steps, kE5M2Nan};
}

template <typename T>
T pattern(uint32_t bits) {
  T value;
  value.bits = static_cast<uint8_t>(bits);
  return value;
}

/// How many of the 256 patterns are not worth what they are in PyTorch, or do not come back.
template <typename T>
int wrong_float8_patterns() {
  int wrong = 0;
  const auto values = float8_reference<T>().values;
  for (uint32_t bits = 0; bits < 256; ++bits) {
    const auto value = static_cast<float>(pattern<T>(bits));
    const uint32_t magnitude = bits & 0x7fU;
    if (magnitude < values.size())
      wrong += std::bit_cast<uint32_t>(value) != (values[magnitude] | (bits & 0x80U) << 24U) || T(value).bits != bits;
    else
      wrong += std::isfinite(value) || std::signbit(value) != (bits >= 0x80U) || std::isfinite(float(T(value)));
  }
  return wrong;
}

/// How many of the 65,282 floats up to infinity, of either sign, whose lower half is zero round to another pattern.
template <typename T>
int wrong_float8_roundings() {
  int wrong = 0;
  const auto steps = float8_reference<T>().steps;
  size_t step = 0;
  for (uint32_t upper = 0; upper <= 0x7f80U; ++upper) {
    if (step + 1 < steps.size() && steps[step + 1].upper == upper) ++step;
    wrong += T(std::bit_cast<float>(upper << 16U)).bits != steps[step].bits;
    wrong += T(std::bit_cast<float>(upper << 16U | 0x80000000U)).bits != (steps[step].bits | 0x80U);
  }
  return wrong;
}

/// Between every two neighbours: the middle goes to the even one, a float's last bit off it to the nearer.
template <typename T>
int wrong_float8_middles() {
  int wrong = 0;
  const auto values = float8_reference<T>().values;
  for (uint32_t low = 0; low + 1 < values.size(); ++low) {
    const float middle = (std::bit_cast<float>(values[low]) + std::bit_cast<float>(values[low + 1])) / 2;
    wrong += T(middle).bits != low + low % 2;
    wrong += T(std::nextafter(middle, 0.0F)).bits != low;
    wrong += T(std::nextafter(middle, std::numeric_limits<float>::infinity())).bits != low + 1;
  }
  return wrong;
}

}  // namespace

TEMPLATE_TEST_CASE("Float8: holds and rounds as PyTorch's type does, bit for bit", "[tensor][bit_equal]", Float8E4M3, Float8E5M2) {
  CHECK(wrong_float8_patterns<TestType>() == 0);
  CHECK(wrong_float8_roundings<TestType>() == 0);
  CHECK(wrong_float8_middles<TestType>() == 0);
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  CHECK((TestType(kNan).bits & 0x7fU) == float8_reference<TestType>().nan);
  CHECK(std::isnan(float(TestType(kNan))));
}

TEMPLATE_TEST_CASE("Float8: within its range what is too large becomes the largest, and NaN stays NaN", "[tensor]",
                   Float8E4M3, Float8E5M2) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float largest = std::bit_cast<float>(float8_reference<TestType>().values.back());
  for (const float beyond : {largest, std::nextafter(largest, kInfinity), 1e30F, kInfinity}) {
    CHECK(float(TestType(TestType::within_range(beyond))) == largest);
    CHECK(float(TestType(TestType::within_range(-beyond))) == -largest);
  }
  CHECK(TestType::within_range(-0.5F) == -0.5F);
  CHECK(std::isnan(TestType::within_range(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("convert: to and from 8 bits as the types themselves do", "[tensor]") {
  const std::vector<float> values{0, 1, -2.5, 448, 464.5, 57344, 1e-7F, 3.14159265F};
  const Tensor from = Tensor::from<float>(values, {8});
  const auto back = [&](DType dtype) {
    const Tensor there = converted(converted(from, dtype), DType::Float32);
    return std::vector(there.values<float>().begin(), there.values<float>().end());
  };
  const auto e4m3 = back(DType::Float8E4M3), e5m2 = back(DType::Float8E5M2);
  for (size_t i = 0; i < values.size(); ++i) {
    CHECK(std::bit_cast<uint32_t>(e4m3[i]) == std::bit_cast<uint32_t>(float(Float8E4M3(values[i]))));
    CHECK(std::bit_cast<uint32_t>(e5m2[i]) == std::bit_cast<uint32_t>(float(Float8E5M2(values[i]))));
  }
}

}  // namespace trainyard
