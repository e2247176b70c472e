#include "ops/cuda/attention_cudnn.h"
#include "ops/cuda/attention_tiles.cuh"
#include "ops/cuda/kernels.h"
#include "ops/elements.h"

namespace trainyard::ops::cuda {
namespace {

template <typename T>
struct Forward {
  AttentionTask task;
  const T *q, *k, *v;
  T* out;
  float* lse;
};

/// What a thread's queries have gathered from the keys so far: exp(score) is kept relative to `most`.
template <int kColumns>
struct Gathered {
  float most[kSide], total[kSide], out[kSide][kColumns / kThreadsX];

  __device__ Gathered() {
    for (int i = 0; i < kSide; ++i) {
      most[i] = -INFINITY, total[i] = 0;
      for (float& value : out[i]) value = 0;
    }
  }

  /// Scores become exp(score − most), and what was gathered is brought to the new maximum. A NaN stays one.
  __device__ void add(float (&scores)[kSide][kSide]) {
    for (int i = 0; i < kSide; ++i) {
      float tile_most = scores[i][0], tile_total = 0;
      for (const float score : scores[i]) tile_most = fmaxf(tile_most, score);
      const float now = fmaxf(most[i], among<kThreadsX>(tile_most, Most{}));
      for (float& score : scores[i]) {
        score = score == -INFINITY ? 0.0F : expf(score - now);
        tile_total += score;
      }
      const float correction = most[i] == -INFINITY ? 0.0F : expf(most[i] - now);
      total[i] = total[i] * correction + among<kThreadsX>(tile_total, Sum{});
      most[i] = now;
      for (float& value : out[i]) value *= correction;
    }
  }
};

/// A block a tile of queries of a head.
template <int kColumns, typename T>
__global__ void __launch_bounds__(kThreads) attention_kernel(Forward<T> work) {
  __shared__ TileMemory memory;
  const AttentionTask& task = work.task;
  const AttentionShape& s = task.shape;
  const Place place(s.heads, s.q_tokens, s.head_dim, kColumns);
  const int64_t first_query = place.first_token, kv_head = place.head / (s.heads / s.kv_heads);
  const auto q = rows_of(work.q, place.row, s.q_tokens, first_query, place.head, s.heads, s.head_dim);
  const Range seen = see(task, place.row, first_query, memory);
  Gathered<kColumns> gathered;
  for (int64_t key = seen.begin; key < seen.end; key += kTile) {
    const TilePair at{place.row, place.head, first_query, key};
    float scores[kSide][kSide];
    dot_rows(q, rows_of(work.k, place.row, s.kv_tokens, key, kv_head, s.kv_heads, s.head_dim), s.head_dim, memory,
             scores);
    finish_scores(task, at, memory, scores);
    gathered.add(scores);
    drop(task, at, scores);
    keep_weights<true>(scores, memory);
    const auto v = rows_of(work.v, place.row, s.kv_tokens, key, kv_head, s.kv_heads, s.head_dim);
    add_weighted<kColumns>(v.from_column(place.first_column), place.columns, memory, gathered.out);
  }
  float factors[kSide];
  for (int i = 0; i < kSide; ++i) factors[i] = gathered.total[i] == 0 ? 0.0F : 1.0F / gathered.total[i];
  const auto out = rows_of(work.out, place.row, s.q_tokens, first_query, place.head, s.heads, s.head_dim);
  store_rows<kColumns>(gathered.out, factors, out.from_column(place.first_column), place.columns);
  if (place.first_column > 0 || thread_x() > 0) return;
  float* const lse = work.lse + (place.row * s.heads + place.head) * s.q_tokens + first_query;
  for (int i = 0; i < kSide; ++i) {
    const int row = kSide * thread_y() + i;
    if (row < q.count) lse[row] = gathered.most[i] + logf(gathered.total[i]);
  }
}

}  // namespace

void attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionShape& shape,
               const AttentionOptions& options, Tensor& out, Tensor& lse) {
  if (q.count() == 0 || attention_by_cudnn(q, k, v, shape, options, out, lse)) return;
  with_element(q.dtype(), [&]<typename T>(T*) {
    with_columns(shape.head_dim, [&](auto columns) {
      const Forward<T> work{.task = {shape, options},
                            .q = elements<T>(q),
                            .k = elements<T>(k),
                            .v = elements<T>(v),
                            .out = elements<T>(out),
                            .lse = elements<float>(lse)};
      launch("attention", q.device(), attention_grid(shape, shape.heads, shape.q_tokens, columns.value),
             attention_kernel<columns.value, T>, work);
    });
  });
}

}  // namespace trainyard::ops::cuda
