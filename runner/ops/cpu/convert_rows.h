#pragma once

#include <cstdint>

namespace trainyard::ops::cpu {

/// Rounds `rows` rows of `width` elements to another type of the ops. The rows lie `from_stride` and `to_stride` elements
/// apart. On the calling thread; cast() is the same for whole tensors, on all threads.
template <typename From, typename To>
void convert_rows(const From* from, int64_t from_stride, To* to, int64_t to_stride, int64_t rows, int64_t width);

}  // namespace trainyard::ops::cpu
