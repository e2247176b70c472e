#pragma once

#include "tensor/tensor.h"

namespace trainyard::ops {

/// to = from, of the same count, each float32, bfloat16 or float16; rounds to nearest even, NaN stays NaN. Of one
/// dtype, whichever: a copy. Throws std::invalid_argument where counts differ or a dtype is another.
void cast(const Tensor& from, Tensor& to);

}  // namespace trainyard::ops
