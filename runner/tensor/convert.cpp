#include "tensor/convert.h"

#include <fmt/format.h>

#include <stdexcept>
#include <type_traits>

namespace trainyard {
namespace {

template <typename Body>
void with_floating(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::Float32:
      return body(static_cast<const float*>(nullptr));
    case DType::BFloat16:
      return body(static_cast<const BFloat16*>(nullptr));
    case DType::Float16:
      return body(static_cast<const Float16*>(nullptr));
    case DType::Float8E4M3:
      return body(static_cast<const Float8E4M3*>(nullptr));
    case DType::Float8E5M2:
      return body(static_cast<const Float8E5M2*>(nullptr));
    case DType::Float64:
      return body(static_cast<const double*>(nullptr));
    default:
      throw std::invalid_argument(fmt::format("convert: {} where floating point was expected", name_of(dtype)));
  }
}

template <typename From, typename To>
void convert_each(const From* from, To* to, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] = static_cast<To>(static_cast<float>(from[i]));
}

}  // namespace

void convert(DType from_dtype, const std::byte* from, DType to_dtype, std::byte* to, size_t count) {
  with_floating(from_dtype, [&]<typename From>(const From*) {
    with_floating(to_dtype, [&]<typename To>(const To*) {
      if constexpr (std::is_same_v<To, double>)  // would lose what float32 does not hold
        throw std::invalid_argument("convert: to float64");
      else
        convert_each(reinterpret_cast<const From*>(from), reinterpret_cast<To*>(to), count);
    });
  });
}

Tensor converted(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype) return tensor;
  Tensor made = Tensor::empty(tensor.shape(), dtype);
  convert(tensor.dtype(), tensor.raw(), dtype, made.raw(), static_cast<size_t>(tensor.count()));
  return made;
}

}  // namespace trainyard
