#include "ops/cpu/kernels.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/turned_heads.h"
#include "ops/elements.h"

namespace trainyard::ops::cpu {
namespace {

template <typename T>
TRAINYARD_MULTIVERSION void rotate(const TurnedHeads<T>& work, int64_t begin, int64_t end) {
  rotate_tokens(work, begin, end);
}

}  // namespace

void rope(const Tensor& x, const Tensor& positions, const RopeTables& tables, Rotation rotation, Tensor& out) {
  with_element(x.dtype(), [&]<typename T>(T*) {
    const TurnedHeads<T> work(x.data<T>(), out.data<T>(), tables, positions, x.size(1), rotation);
    parallel_for(x.size(0), rows_grain(x.size(1)), [&](int64_t begin, int64_t end) { rotate(work, begin, end); });
  });
}

}  // namespace trainyard::ops::cpu
