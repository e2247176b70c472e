#pragma once

#include <bit>
#include <cstdint>

#include "ops/elements.h"
#include "ops/float8.h"

// What the kernels of ops/float8.h have in common on every device.
namespace trainyard::ops {

/// The largest value of a dtype of 8 bits.
constexpr float largest_of(DType dtype) {
  return dtype == DType::Float8E5M2 ? Float8E5M2::largest() : Float8E4M3::largest();
}

/// float8_scale() of one number.
constexpr float float8_scale_of(float most, float largest, bool power_of_2) {
  constexpr double kLeast = 1e-12;  // torchao's: a matrix of zeros has a scale too
  const double above = static_cast<double>(most) > kLeast ? static_cast<double>(most) : kLeast;
  const auto scale = static_cast<float>(static_cast<double>(largest) / above);
  return power_of_2 ? std::bit_cast<float>(std::bit_cast<uint32_t>(scale) & 0xff800000U) : scale;  // no mantissa
}

/// Calls `body` with null pointers of x's element type and of the targets'.
template <typename Body>
void with_float8_cast(const Tensor& x, const Float8Target& by_rows, const Float8Target& by_columns, const Body& body) {
  const DType to = (by_rows.values.defined() ? by_rows : by_columns).values.dtype();
  with_float8(to, [&]<typename To>(To* made) {
    if (is_float8(x.dtype())) return body(made, made);
    with_element(x.dtype(), [&]<typename From>(From* given) { body(given, made); });
  });
}

}  // namespace trainyard::ops
