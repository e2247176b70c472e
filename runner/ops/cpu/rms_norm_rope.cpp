#include "ops/cpu/kernels.h"
#include "ops/cpu/rms_norm_rows.h"
#include "ops/cpu/row_sums.h"
#include "ops/cpu/turned_heads.h"
#include "ops/elements.h"

namespace trainyard::ops::cpu {
namespace {

/// Tokens whose heads stay in the first-level cache from the one loop to the other. One loop for both ops is not
/// faster: it keeps more at hand than there are registers.
template <typename T>
TRAINYARD_INLINE int64_t tokens_at_once(const TurnedHeads<T>& work) {
  constexpr int64_t kElements = 2048;
  return std::max<int64_t>(kElements / (work.heads * 2 * work.half), 1);
}

template <typename T>
TRAINYARD_MULTIVERSION void normalize_and_rotate(const NormRows<T>& rows, const TurnedHeads<T>& work, int64_t begin,
                                                 int64_t end) {
  const int64_t step = tokens_at_once(work);
  for (int64_t token = begin; token < end; token += step) {
    const int64_t next = std::min(token + step, end);
    for (int64_t row = token * work.heads; row < next * work.heads; ++row)
      normalize_row(rows, rows.x + row * rows.hidden, row);
    rotate_tokens(work, token, next);
  }
}

template <typename T>
TRAINYARD_MULTIVERSION void rotate_back_and_derive(const TurnedHeads<T>& work, const NormBackwardRows<T>& rows,
                                                   float* dweight, int64_t begin, int64_t end) {
  const int64_t step = tokens_at_once(work);
  for (int64_t token = begin; token < end; token += step) {
    const int64_t next = std::min(token + step, end);
    rotate_tokens(work, token, next);
    backward_rows_to<false>(rows, dweight, token * work.heads, next * work.heads);
  }
}

}  // namespace

void rms_norm_rope(const Tensor& x, const Tensor& weight, float eps, const RopePlaces& places, Tensor& out,
                   Tensor& rstd) {
  with_element(x.dtype(), [&]<typename T>(T*) {
    const NormRows<T> rows{x.data<T>(), weight.data<T>(), out.data<T>(), rstd.data<float>(), weight.count(), eps};
    const TurnedHeads<T> work(rows.y, rows.y, places.tables, places.positions, x.size(1), Rotation::Forward);
    parallel_for(x.size(0), rows_grain(x.size(1)),
                 [&](int64_t begin, int64_t end) { normalize_and_rotate(rows, work, begin, end); });
  });
}

void rms_norm_rope_backward(const Tensor& dout, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                            const RopePlaces& places, RmsNormRopeGradients& gradients) {
  const Tensor dweight = with_element(x.dtype(), [&]<typename T>(T*) {
    T* const dx = gradients.dx.data<T>();
    const TurnedHeads<T> work(dout.data<T>(), dx, places.tables, places.positions, x.size(1), Rotation::Inverse);
    const NormBackwardRows<T> rows{dx, x.data<T>(), weight.data<T>(), rstd.data<float>(), dx, weight.count(), false};
    return row_sums(x.size(0), rows_grain(x.size(1)), weight.count(), [&](int64_t begin, int64_t end, float* sums) {
      rotate_back_and_derive(work, rows, sums, begin, end);
    });
  });
  if (gradients.dweight.defined()) add_to(gradients.dweight, dweight);
}

}  // namespace trainyard::ops::cpu
