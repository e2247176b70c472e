#pragma once

#include "tensor/tensor.h"

namespace trainyard::ops {

/// Calls `body` with a null pointer of the element type: the one place where a dtype becomes a type. The caller has
/// checked that it is_computed.
///   with_element(x.dtype(), [&]<typename T>(T*) { kernel(x.data<T>(), x.count()); });
template <typename Body>
decltype(auto) with_element(DType dtype, const Body& body) {
  if (dtype == DType::BFloat16) return body(static_cast<BFloat16*>(nullptr));
  if (dtype == DType::Float16) return body(static_cast<Float16*>(nullptr));
  return body(static_cast<float*>(nullptr));
}

template <typename Body>
decltype(auto) with_elements(DType first, DType second, const Body& body) {
  return with_element(
      first, [&]<typename A>(A* a) { return with_element(second, [&]<typename B>(B* b) { return body(a, b); }); });
}

/// The same for the types of 8 bits.
template <typename Body>
decltype(auto) with_float8(DType dtype, const Body& body) {
  if (dtype == DType::Float8E5M2) return body(static_cast<Float8E5M2*>(nullptr));
  return body(static_cast<Float8E4M3*>(nullptr));
}

}  // namespace trainyard::ops
