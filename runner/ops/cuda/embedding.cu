#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.cuh"
#include "ops/elements.h"

namespace trainyard::ops::cuda {
namespace {

/// A block a token.
template <int kCount, typename T>
__global__ void __launch_bounds__(kThreads)
    embedding_kernel(const int32_t* ids, int64_t first_row, int64_t rows, int64_t width, const T* table, T* out) {
  const int64_t token = blockIdx.x, row = ids[token] - first_row;
  const bool is_here = row >= 0 && row < rows;
  for (int64_t i = threadIdx.x; i < width / kCount; i += blockDim.x)
    store<kCount>(out + token * width, i, is_here ? load<kCount>(table + row * width, i) : Pack<T, kCount>{});
}

template <typename Total, typename T>
struct Rows {
  const int32_t* ids;
  const T* dout;
  Total* dtable;
  int64_t tokens, first_row, padding_idx, rows, width;
};

/// Lists in `matches` the threads of the block for which `is_match`, in their order, and returns how many they are.
/// Each thread calls it, and may read the list until it calls it again.
__device__ inline int list_matches(bool is_match, int* matches) {
  constexpr unsigned kWarps = kThreads / 32;
  __shared__ int of_warp[kWarps];
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, lanes = __ballot_sync(0xffffffffU, is_match);
  if (lane == 0) of_warp[warp] = __popc(lanes);
  __syncthreads();
  int place = __popc(lanes & ((1U << lane) - 1)), found = 0;
  for (unsigned each = 0; each < kWarps; ++each) {
    if (each < warp) place += of_warp[each];
    found += of_warp[each];
  }
  if (is_match) matches[place] = static_cast<int>(threadIdx.x);
  __syncthreads();
  return found;
}

/// A block a token, of which only those act whose id no token before has: each adds the rows of all tokens with that
/// id, in their order. So no two blocks meet at a row, the sums are the CPU's, and nothing is sorted. The comparisons
/// are tokens²/2 of cached 32-bit words: few beside the rows themselves up to some ten thousand tokens.
template <int kCount, typename Total, typename T>
__global__ void __launch_bounds__(kThreads) embedding_backward_kernel(Rows<Total, T> rows) {
  __shared__ int matches[kThreads];
  const int64_t token = blockIdx.x;
  const int32_t id = rows.ids[token];
  const int64_t row = id - rows.first_row;
  if (row < 0 || row >= rows.rows || id == rows.padding_idx) return;
  int before = 0;
  for (int64_t i = threadIdx.x; i < token; i += blockDim.x) before += rows.ids[i] == id ? 1 : 0;
  if (block_sum(before) > 0) return;
  Total* const total = rows.dtable + row * rows.width;
  for (int64_t begin = token; begin < rows.tokens; begin += kThreads) {
    const int64_t mine = begin + threadIdx.x;
    const int found = list_matches(mine < rows.tokens && rows.ids[mine] == id, matches);
    if (found == 0) continue;
    for (int64_t pack = threadIdx.x; pack < rows.width / kCount; pack += blockDim.x) {
      auto sums = load<kCount>(total, pack);  // nothing is stored in between, so many rows are on their way at once
      for (int i = 0; i < found; ++i) {
        const auto addends = load<kCount>(rows.dout + (begin + matches[i]) * rows.width, pack);
        for (int k = 0; k < kCount; ++k)
          sums.values[k] = from_float<Total>(to_float(sums.values[k]) + to_float(addends.values[k]));
      }
      store<kCount>(total, pack, sums);
    }
  }
}

}  // namespace

void embedding(const Tensor& ids, const Tensor& table, int64_t first_row, Tensor& out) {
  const int64_t tokens = ids.count(), width = table.size(1);
  if (tokens == 0) return;
  with_element(table.dtype(), [&]<typename T>(T*) {
    with_packs(
        width % kWide<T> == 0,
        [&](auto pack) {
          launch("embedding", ids.device(), grid_of_rows(tokens, width / pack.value), embedding_kernel<pack.value, T>,
                 elements<int32_t>(ids), first_row, table.size(0), width, elements<T>(table), elements<T>(out));
        },
        elements<T>(table), elements<T>(out));
  });
}

void embedding_backward(const Tensor& dout, const Tensor& ids, int64_t first_row, int64_t padding_idx, Tensor& dtable) {
  if (ids.count() == 0) return;
  with_elements(dtable.dtype(), dout.dtype(), [&]<typename Total, typename T>(Total*, T*) {
    const Rows<Total, T> rows{.ids = elements<int32_t>(ids),
                              .dout = elements<T>(dout),
                              .dtable = elements<Total>(dtable),
                              .tokens = ids.count(),
                              .first_row = first_row,
                              .padding_idx = padding_idx,
                              .rows = dtable.size(0),
                              .width = dtable.size(1)};
    with_packs(
        rows.width % kWide<Total, T> == 0,
        [&](auto pack) {
          launch("embedding_backward", ids.device(), {.blocks = rows.tokens},
                 embedding_backward_kernel<pack.value, Total, T>, rows);
        },
        elements<Total>(std::as_const(dtable)), rows.dout);
  });
}

}  // namespace trainyard::ops::cuda
