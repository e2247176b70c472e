#pragma once

#include "tensor/tensor.h"

namespace trainyard::ops {

enum class Transpose : uint8_t { No, Yes };

struct MatmulOptions {
  Transpose a = Transpose::No;
  Transpose b = Transpose::No;
  bool accumulate = false;  ///< c += instead of c =
  Tensor bias;              ///< [n], c's dtype: added to every row; undefined: none
};

/// c = op(a) · op(b) + bias, or c += with `accumulate`; op transposes where the options say so.
///   a  [m, k], stored [k, m] where transposed      b  [k, n], stored [n, k] where transposed      c  [m, n]
/// a and b: both of one dtype of the ops; c: any of them. Sums, bias included, are float32, rounded once at the store.
/// c must not overlap a or b. A Linear layer: y = x · Wᵀ + bias, dx = dy · W, dW += dyᵀ · x, and ops/bias.h for dbias:
///   matmul(x, w, y, {.b = Transpose::Yes, .bias = bias});
///   matmul(dy, w, dx);
///   matmul(dy, x, dw, {.a = Transpose::Yes, .accumulate = true});
/// Throws std::invalid_argument where shapes or dtypes do not fit.
void matmul(const Tensor& a, const Tensor& b, Tensor& c, MatmulOptions options = {});

/// FLOP/s that the calling thread's threads() reach here in large products of a dtype of the ops: the best of a few,
/// about a tenth of a second in all. What MFU and the benches divide by.
double measure_matmul_peak(DType dtype);

}  // namespace trainyard::ops
