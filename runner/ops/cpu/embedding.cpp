#include <cstring>

#include "ops/cpu/kernels.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/simd.h"
#include "ops/elements.h"

namespace trainyard::ops::cpu {
namespace {

template <typename Total, typename T>
TRAINYARD_MULTIVERSION void add_row(Total* total, const T* addend, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) total[i] = from_float<Total>(to_float(total[i]) + to_float(addend[i]));
}

}  // namespace

void embedding(const Tensor& ids, const Tensor& table, Tensor& out) {
  const int64_t row_bytes = table.size(1) * static_cast<int64_t>(size_of(table.dtype()));
  if (row_bytes == 0 || ids.count() == 0) return;
  const int32_t* const id = ids.data<int32_t>();
  const std::byte* const from = table.raw();
  std::byte* const to = out.raw();
  parallel_for(ids.count(), rows_grain(table.size(1)), [=](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token)
      std::memcpy(to + token * row_bytes, from + id[token] * row_bytes, static_cast<size_t>(row_bytes));
  });
}

// Each thread takes a range of columns and walks the tokens in order: no two threads meet at an element, and the order
// of the sums is that of one thread.
void embedding_backward(const Tensor& dout, const Tensor& ids, Tensor& dtable) {
  const int64_t tokens = ids.count(), hidden = dtable.size(1);
  const int32_t* const id = ids.data<int32_t>();
  const int64_t columns_grain = std::max<int64_t>(kElementGrain / std::max<int64_t>(tokens, 1), 64);
  with_elements(dtable.dtype(), dout.dtype(), [&]<typename Total, typename T>(Total*, T*) {
    parallel_for(hidden, columns_grain,
                 [=, total = dtable.data<Total>(), addend = dout.data<T>()](int64_t begin, int64_t end) {
                   for (int64_t token = 0; token < tokens; ++token)
                     add_row(total + id[token] * hidden + begin, addend + token * hidden + begin, end - begin);
                 });
  });
}

}  // namespace trainyard::ops::cpu
