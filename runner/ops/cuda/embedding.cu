#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.cuh"
#include "ops/elements.h"

namespace trainyard::ops::cuda {
namespace {

/// A block a token.
template <int kCount, typename T>
__global__ void __launch_bounds__(kThreads)
    embedding_kernel(const int32_t* ids, int64_t width, const T* table, T* out) {
  const int64_t token = blockIdx.x, row = ids[token];
  for (int64_t i = threadIdx.x; i < width / kCount; i += blockDim.x)
    store<kCount>(out + token * width, i, load<kCount>(table + row * width, i));
}

template <typename Total, typename T>
struct Rows {
  const int32_t* ids;
  const T* dout;
  Total* dtable;
  int64_t tokens, width;
};

/// A block a token, of which only those act whose id no token before has: each adds the rows of all tokens with that
/// id, in their order. So no two blocks meet at a row, the sums are the CPU's, and nothing is sorted. The comparisons
/// are tokens²/2 of cached 32-bit words: few beside the rows themselves up to some ten thousand tokens.
template <typename Total, typename T>
__global__ void __launch_bounds__(kThreads) embedding_backward_kernel(Rows<Total, T> rows) {
  __shared__ int matches[kThreads];
  __shared__ int found, is_later;
  const int64_t token = blockIdx.x;
  const int32_t id = rows.ids[token];
  if (threadIdx.x == 0) is_later = 0;
  __syncthreads();
  for (int64_t i = threadIdx.x; i < token; i += blockDim.x)
    if (rows.ids[i] == id) is_later = 1;  // whoever writes, writes the same
  __syncthreads();
  if (is_later) return;
  Total* const total = rows.dtable + id * rows.width;
  for (int64_t begin = token; begin < rows.tokens; begin += kThreads) {
    const int64_t mine = begin + threadIdx.x;
    matches[threadIdx.x] = mine < rows.tokens && rows.ids[mine] == id ? 1 : 0;
    __syncthreads();
    if (threadIdx.x == 0) {
      found = 0;
      for (int i = 0; i < kThreads; ++i)
        if (matches[i]) matches[found++] = i;
    }
    __syncthreads();
    for (int64_t column = threadIdx.x; column < rows.width; column += blockDim.x)
      for (int i = 0; i < found; ++i) {
        const float addend = to_float(rows.dout[(begin + matches[i]) * rows.width + column]);
        total[column] = from_float<Total>(to_float(total[column]) + addend);
      }
    __syncthreads();
  }
}

}  // namespace

void embedding(const Tensor& ids, const Tensor& table, Tensor& out) {
  const int64_t tokens = ids.count(), width = table.size(1);
  if (tokens == 0) return;
  with_element(table.dtype(), [&]<typename T>(T*) {
    with_packs(
        width % kWide<T> == 0,
        [&](auto pack) {
          launch("embedding", ids.device(), {.blocks = tokens}, embedding_kernel<pack.value, T>, elements<int32_t>(ids),
                 width, elements<T>(table), elements<T>(out));
        },
        elements<T>(table), elements<T>(out));
  });
}

void embedding_backward(const Tensor& dout, const Tensor& ids, Tensor& dtable) {
  if (ids.count() == 0) return;
  with_elements(dtable.dtype(), dout.dtype(), [&]<typename Total, typename T>(Total*, T*) {
    const Rows<Total, T> rows{.ids = elements<int32_t>(ids),
                              .dout = elements<T>(dout),
                              .dtable = elements<Total>(dtable),
                              .tokens = ids.count(),
                              .width = dtable.size(1)};
    launch("embedding_backward", ids.device(), {.blocks = rows.tokens}, embedding_backward_kernel<Total, T>, rows);
  });
}

}  // namespace trainyard::ops::cuda
