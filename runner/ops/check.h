#pragma once

#include <optional>
#include <string_view>

#include "ops/dropout.h"
#include "tensor/tensor.h"

// Preconditions of the ops, checked in release builds too. Each throws std::invalid_argument, with the op, the tensor's
// name and both values, and refuses a tensor whose storage is released.
namespace trainyard::ops {

void require(std::string_view op, std::string_view name, const Tensor& tensor, const Shape& shape, DType dtype);
void require_count(std::string_view op, std::string_view name, const Tensor& tensor, int64_t count);
void require_rank(std::string_view op, std::string_view name, const Tensor& tensor, int rank);

/// float32, bfloat16 or float16.
void require_floating(std::string_view op, std::string_view name, const Tensor& tensor);

/// int32 values within [0, limit), or equal to `allowed`; the message names the first that is not. Those on a device
/// are the caller's word: to look at them would be to wait for them.
void require_indices(std::string_view op, std::string_view name, const Tensor& indices, int64_t limit,
                     std::optional<int32_t> allowed = std::nullopt);

/// A rate in [0, 1), and the numbers of the rows.
void require_dropout(std::string_view op, const Dropout& dropout);

}  // namespace trainyard::ops
