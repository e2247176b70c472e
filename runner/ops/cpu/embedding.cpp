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

void embedding(const Tensor& ids, const Tensor& table, int64_t first_row, Tensor& out) {
  const int64_t row_bytes = table.size(1) * static_cast<int64_t>(size_of(table.dtype()));
  if (row_bytes == 0 || ids.count() == 0) return;
  const int64_t rows = table.size(0);
  const int32_t* const id = ids.data<int32_t>();
  const std::byte* const from = table.raw();
  std::byte* const to = out.raw();
  parallel_for(ids.count(), rows_grain(table.size(1)), [=](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      const int64_t row = id[token] - first_row;
      std::byte* const place = to + token * row_bytes;
      if (row >= 0 && row < rows)
        std::memcpy(place, from + row * row_bytes, static_cast<size_t>(row_bytes));
      else
        std::memset(place, 0, static_cast<size_t>(row_bytes));
    }
  });
}

// Each thread takes a range of columns and walks the tokens in order: no two threads meet at an element, and the order
// of the sums is that of one thread.
void embedding_backward(const Tensor& dout, const Tensor& ids, int64_t first_row, int64_t padding_idx, Tensor& dtable) {
  const int64_t tokens = ids.count(), rows = dtable.size(0), hidden = dtable.size(1);
  const int32_t* const id = ids.data<int32_t>();
  const int64_t columns_grain = std::max<int64_t>(kElementGrain / std::max<int64_t>(tokens, 1), 64);
  with_elements(dtable.dtype(), dout.dtype(), [&]<typename Total, typename T>(Total*, T*) {
    parallel_for(hidden, columns_grain,
                 [=, total = dtable.data<Total>(), addend = dout.data<T>()](int64_t begin, int64_t end) {
                   for (int64_t token = 0; token < tokens; ++token) {
                     const int64_t row = id[token] - first_row;
                     if (row >= 0 && row < rows && id[token] != padding_idx)
                       add_row(total + row * hidden + begin, addend + token * hidden + begin, end - begin);
                   }
                 });
  });
}

}  // namespace trainyard::ops::cpu
