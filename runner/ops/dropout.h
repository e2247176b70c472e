#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace trainyard::ops {

/// Which values are dropped (Srivastava et al. 2014), by a generator that counts instead of remembering: value `column`
/// of token t of a row depends on (seed, the row's number in the run, t, column) alone. So the mask is the same
/// whatever the number of ranks and micro-batches, and backward and recomputation make it again instead of keeping it.
///   stream = mix(mix(seed ^ mix(sequence)) + t), mix = splitmix64's finisher (Steele, Lea & Flood 2014)
///   u = the 32 bits of lowbias32((column + stream's low half), xored with its high half) (Wellons 2018)
///   dropped where u < rate · 2³²; the others are multiplied by 1 / (1 − rate)
struct Dropout {
  float rate = 0;     ///< in [0, 1); 0: nothing is dropped
  uint64_t seed = 0;  ///< of the run and the place in the model
  Tensor sequences;   ///< int64 [rows]: the number of each row; needed where rate > 0
  // Where the values lie that are a part of those of all ranks; so the mask does not depend on how they are split.
  int64_t tokens = 0;       ///< of a row; 0: x has all tokens of its rows
  int64_t first_token = 0;  ///< of x, counted over all rows; tokens past the last row are padding
  int64_t first_column = 0;
  int64_t first_head = 0;  ///< of an attention
};

/// y = x with its dropped values 0 and the others scaled; also the way back, from dy to dx.
///   x, y  [rows · tokens, width], float32, bfloat16 or float16, rows that of `dropout.sequences`; y may be x.
///         With dropout.tokens any number of tokens from first_token on
/// Throws std::invalid_argument where shapes, dtypes or the rate do not fit.
void dropout(const Tensor& x, const Dropout& dropout, Tensor& y);

}  // namespace trainyard::ops
