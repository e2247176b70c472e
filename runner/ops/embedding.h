#pragma once

#include "tensor/tensor.h"

namespace trainyard::ops {

/// out[t] = table[ids[t]].   ids [tokens] int32      table [vocab, hidden]      out [tokens, hidden], table's dtype
/// float32, bfloat16 or float16. Throws std::invalid_argument where shapes or dtypes do not fit, or naming the first id
/// outside [0, vocab) and its token; so does backward.
void embedding(const Tensor& ids, const Tensor& table, Tensor& out);

/// dtable[ids[t]] += dout[t], in the order of the tokens for any number of threads.
///   dout [tokens, hidden]      dtable [vocab, hidden]; each float32, bfloat16 or float16 by itself
void embedding_backward(const Tensor& dout, const Tensor& ids, Tensor& dtable);

}  // namespace trainyard::ops
