#include "ops/check.h"

#include <fmt/format.h>

#include <stdexcept>

namespace trainyard::ops {
namespace {

void require_memory(std::string_view op, std::string_view name, const Tensor& tensor) {
  if (tensor.count() > 0 && !tensor.storage()->is_materialized())
    throw std::invalid_argument(
        fmt::format("{}: the memory of {} {} is released", op, name, to_string(tensor.shape())));
}

}  // namespace

void require(std::string_view op, std::string_view name, const Tensor& tensor, const Shape& shape, DType dtype) {
  if (tensor.shape() != shape || tensor.dtype() != dtype)
    throw std::invalid_argument(fmt::format("{}: {} is {} {}, but {} {} is needed", op, name, name_of(tensor.dtype()),
                                            to_string(tensor.shape()), name_of(dtype), to_string(shape)));
  require_memory(op, name, tensor);
}

void require_count(std::string_view op, std::string_view name, const Tensor& tensor, int64_t count) {
  if (tensor.count() != count)
    throw std::invalid_argument(
        fmt::format("{}: {} is {}, but {} elements are needed", op, name, to_string(tensor.shape()), count));
  require_memory(op, name, tensor);
}

void require_rank(std::string_view op, std::string_view name, const Tensor& tensor, int rank) {
  if (tensor.rank() != rank)
    throw std::invalid_argument(
        fmt::format("{}: {} is {}, but {} dimensions are needed", op, name, to_string(tensor.shape()), rank));
}

void require_floating(std::string_view op, std::string_view name, const Tensor& tensor) {
  if (!is_computed(tensor.dtype()))
    throw std::invalid_argument(
        fmt::format("{}: {} is {}, but float32, bfloat16 or float16 is needed", op, name, name_of(tensor.dtype())));
  require_memory(op, name, tensor);
}

void require_indices(std::string_view op, std::string_view name, const Tensor& indices, int64_t limit,
                     std::optional<int32_t> allowed) {
  if (indices.device().kind != DeviceKind::Cpu) return;
  const std::span<const int32_t> values = indices.values<int32_t>();
  for (size_t i = 0; i < values.size(); ++i)
    if ((values[i] < 0 || values[i] >= limit) && allowed != values[i])
      throw std::invalid_argument(fmt::format("{}: {}[{}] is {}, outside 0 to {}", op, name, i, values[i], limit - 1));
}

void require_dropout(std::string_view op, const Dropout& dropout) {
  if (!(dropout.rate >= 0 && dropout.rate < 1))
    throw std::invalid_argument(
        fmt::format("{}: a dropout rate of {}; from 0 to below 1 is possible", op, dropout.rate));
  require(op, "sequences", dropout.sequences, {dropout.sequences.count()}, DType::Int64);
}

}  // namespace trainyard::ops
