#pragma once

#include <optional>

#include "tensor/tensor.h"

namespace trainyard::ops {

/// Which rows of a longer table those of a tensor are, where ranks split it.
struct TablePart {
  int64_t first = 0;
  int64_t whole = 0;  ///< rows of the whole table; 0: the tensor has all of them
};

/// out[t] = table[ids[t]]; 0 where `part` has no row of that id.   ids [tokens] int32      table [vocab, hidden] out
/// [tokens, hidden], table's dtype float32, bfloat16 or float16. Throws std::invalid_argument where shapes or dtypes do
/// not fit, or naming the first id outside [0, vocab), of the whole table, and its token; so does backward.
void embedding(const Tensor& ids, const Tensor& table, Tensor& out, const TablePart& part = {});

/// dtable[ids[t]] += dout[t] where `part` has that row, in the order of the tokens for any number of threads.
///   dout [tokens, hidden]      dtable [vocab, hidden]; each float32, bfloat16 or float16 by itself
/// `padding_idx`: the row of the whole table to which nothing is added, as PyTorch's; it must be in [0, vocab).
void embedding_backward(const Tensor& dout, const Tensor& ids, Tensor& dtable, const TablePart& part = {},
                        std::optional<int64_t> padding_idx = {});

/// What the kernels of every device take for no padding_idx: no id is negative.
constexpr int64_t kNoPadding = -1;

}  // namespace trainyard::ops
