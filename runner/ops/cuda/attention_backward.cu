#include "ops/cuda/attention_cudnn.h"
#include "ops/cuda/attention_tiles.cuh"
#include "ops/cuda/kernels.h"
#include "ops/elements.h"

namespace trainyard::ops::cuda {
namespace {

template <typename T>
struct Backward {
  AttentionTask task;
  const T *q, *k, *v, *out, *dout;
  const float* lse;
  float* delta;  ///< [batch, heads, q_tokens]: Σ dout · out
  T *dq, *dk, *dv;
  float* dbias_parts;  ///< [batch, heads, tiles of queries, kv_tokens + kTile - 1]; null: no bias
};

/// A warp a head of a token.
template <typename T>
__global__ void __launch_bounds__(kThreads) delta_kernel(Backward<T> work) {
  const AttentionShape& s = work.task.shape;
  const int64_t lane = threadIdx.x % 32, warps = int64_t{gridDim.x} * kThreads / 32;
  for (int64_t i = (int64_t{blockIdx.x} * kThreads + threadIdx.x) / 32; i < s.batch * s.q_tokens * s.heads;
       i += warps) {
    float dot = 0;
    for (int64_t at = i * s.head_dim + lane; at < (i + 1) * s.head_dim; at += 32)
      dot += to_float(work.dout[at]) * to_float(work.out[at]);
    dot = among<32>(dot, Sum{});
    const int64_t token = i / s.heads, row = token / s.q_tokens;
    if (lane == 0) work.delta[(row * s.heads + i % s.heads) * s.q_tokens + token % s.q_tokens] = dot;
  }
}

/// What is computed again for a pair of tiles: the probabilities after dropout, and P · (dP − delta), the gradients of
/// the scores.
template <typename T>
__device__ void tile_gradients(const Backward<T>& work, const TilePair& at, TileMemory& memory,
                               float (&probabilities)[kSide][kSide], float (&dscores)[kSide][kSide]) {
  const AttentionShape& s = work.task.shape;
  const int64_t kv_head = at.head / (s.heads / s.kv_heads);
  const auto queries = [&](const T* data) {
    return rows_of(data, at.row, s.q_tokens, at.first_query, at.head, s.heads, s.head_dim);
  };
  const auto keys = [&](const T* data) {
    return rows_of(data, at.row, s.kv_tokens, at.first_key, kv_head, s.kv_heads, s.head_dim);
  };
  dot_rows(queries(work.q), keys(work.k), s.head_dim, memory, probabilities);
  dot_rows(queries(work.dout), keys(work.v), s.head_dim, memory, dscores);
  finish_scores(work.task, at, memory, probabilities);
  drop(work.task, at, dscores);
  const int64_t first = (at.row * s.heads + at.head) * s.q_tokens + at.first_query;
  for (int i = 0; i < kSide; ++i) {
    const int row = kSide * thread_y() + i;
    if (at.first_query + row >= s.q_tokens) {
      for (int j = 0; j < kSide; ++j) probabilities[i][j] = dscores[i][j] = 0;
      continue;
    }
    const float lse = work.lse[first + row], delta = work.delta[first + row];
    for (int j = 0; j < kSide; ++j) {
      float& p = probabilities[i][j];
      p = p == -INFINITY ? 0.0F : expf(p - lse);
      dscores[i][j] = p * (dscores[i][j] - delta);
    }
  }
  drop(work.task, at, probabilities);
}

/// parts[key + t] += the gradients of the scores at distance t of a tile, where t = key's − query's place + kTile − 1:
/// a thread a distance, in the order of the queries.
__device__ inline void add_diagonals(const TileMemory& memory, int64_t keys, float* parts) {
  const int t = static_cast<int>(threadIdx.x);
  if (t >= keys + kTile - 1) return;
  float sum = 0;
  for (int query = 0; query < kTile; ++query) {
    const int key = query + t - (kTile - 1);
    if (key >= 0 && key < keys) sum += memory.weights[key * kTileStride + query];
  }
  parts[t] += sum;
}

/// dq, and the parts of dbias: a block a tile of queries of a head.
template <int kColumns, typename T>
__global__ void __launch_bounds__(kThreads) dq_kernel(Backward<T> work) {
  __shared__ TileMemory memory;
  const AttentionTask& task = work.task;
  const AttentionShape& s = task.shape;
  const Place place(s.heads, s.q_tokens, s.head_dim, kColumns);
  const int64_t first_query = place.first_token, kv_head = place.head / (s.heads / s.kv_heads);
  const int64_t part = (place.row * s.heads + place.head) * tiles_of(s.q_tokens) + place.tile;
  const bool adds_bias = work.dbias_parts && place.first_column == 0;
  const Range seen = see(task, place.row, first_query, memory);
  float dq[kSide][kColumns / kThreadsX] = {};
  for (int64_t key = seen.begin; key < seen.end; key += kTile) {
    float probabilities[kSide][kSide], dscores[kSide][kSide];
    tile_gradients(work, {place.row, place.head, first_query, key}, memory, probabilities, dscores);
    keep_weights<true>(dscores, memory);
    const auto k = rows_of(work.k, place.row, s.kv_tokens, key, kv_head, s.kv_heads, s.head_dim);
    add_weighted<kColumns>(k.from_column(place.first_column), place.columns, memory, dq);
    if (adds_bias) add_diagonals(memory, k.count, work.dbias_parts + part * (s.kv_tokens + kTile - 1) + key);
  }
  const float factors[kSide] = {task.scale, task.scale, task.scale, task.scale};
  const auto to = rows_of(work.dq, place.row, s.q_tokens, first_query, place.head, s.heads, s.head_dim);
  store_rows<kColumns>(dq, factors, to.from_column(place.first_column), place.columns);
}

/// dk and dv: a block a tile of keys of a KV head. It goes over the query heads that share it, so no two blocks meet,
/// for two more products than one pass over both would have.
template <int kColumns, typename T>
__global__ void __launch_bounds__(kThreads) dkv_kernel(Backward<T> work) {
  __shared__ TileMemory memory;
  const AttentionTask& task = work.task;
  const AttentionShape& s = task.shape;
  const Place place(s.kv_heads, s.kv_tokens, s.head_dim, kColumns);
  const int64_t first_key = place.first_token, group = s.heads / s.kv_heads;
  const Range keys{first_key, std::min(first_key + kTile, s.kv_tokens)};
  const Range queries = task.visibility.queries_of(keys);
  float dk[kSide][kColumns / kThreadsX] = {}, dv[kSide][kColumns / kThreadsX] = {};
  for (int64_t head = place.head * group; head < (place.head + 1) * group; ++head)
    for (int64_t query = queries.begin; query < queries.end; query += kTile) {
      const Range seen = see(task, place.row, query, memory);
      if (seen.begin >= keys.end || seen.end <= keys.begin) continue;
      float probabilities[kSide][kSide], dscores[kSide][kSide];
      tile_gradients(work, {place.row, head, query, first_key}, memory, probabilities, dscores);
      keep_weights<false>(probabilities, memory);
      const auto dout = rows_of(work.dout, place.row, s.q_tokens, query, head, s.heads, s.head_dim);
      add_weighted<kColumns>(dout.from_column(place.first_column), place.columns, memory, dv);
      keep_weights<false>(dscores, memory);
      const auto q = rows_of(work.q, place.row, s.q_tokens, query, head, s.heads, s.head_dim);
      add_weighted<kColumns>(q.from_column(place.first_column), place.columns, memory, dk);
    }
  const float of_dk[kSide] = {task.scale, task.scale, task.scale, task.scale}, of_dv[kSide] = {1, 1, 1, 1};
  const auto to = [&](T* data) {
    return rows_of(data, place.row, s.kv_tokens, first_key, place.head, s.kv_heads, s.head_dim)
        .from_column(place.first_column);
  };
  store_rows<kColumns>(dk, of_dk, to(work.dk), place.columns);
  store_rows<kColumns>(dv, of_dv, to(work.dv), place.columns);
}

/// dbias[head, distance] = Σ over batch rows and tiles of queries, in their order: a thread an element.
__global__ void __launch_bounds__(kThreads) dbias_kernel(AttentionShape s, const float* parts, float* dbias) {
  const int64_t span = s.q_tokens + s.kv_tokens - 1, tiles = tiles_of(s.q_tokens), width = s.kv_tokens + kTile - 1;
  const Stride stride = grid_stride();
  for (int64_t i = stride.first; i < s.heads * span; i += stride.step) {
    const int64_t head = i / span, from_last_query = i % span - (s.q_tokens - 1);
    float sum = 0;
    for (int64_t row = 0; row < s.batch; ++row)
      for (int64_t tile = 0; tile < tiles; ++tile) {
        const int64_t at = from_last_query + tile * kTile + kTile - 1;
        if (at >= 0 && at < width) sum += parts[((row * s.heads + head) * tiles + tile) * width + at];
      }
    dbias[i] = sum;
  }
}

template <int kColumns, typename T>
void launch_gradients(const Backward<T>& work, Device device) {
  const AttentionShape& s = work.task.shape;
  const int64_t vectors = s.batch * s.q_tokens * s.heads;
  if (vectors > 0) {
    launch("attention_backward", device, grid_for(vectors * 32), delta_kernel<T>, work);
    launch("attention_backward", device, attention_grid(s, s.heads, s.q_tokens, kColumns), dq_kernel<kColumns, T>,
           work);
  }
  if (s.batch * s.kv_tokens > 0)
    launch("attention_backward", device, attention_grid(s, s.kv_heads, s.kv_tokens, kColumns), dkv_kernel<kColumns, T>,
           work);
}

}  // namespace

void attention_backward(const Tensor& dout, const AttentionSaved& saved, const AttentionShape& shape,
                        const AttentionOptions& options, AttentionGradients& gradients) {
  if (attention_backward_by_cudnn(dout, saved, shape, options, gradients)) return;
  const Device device = dout.device();
  Tensor delta = number_for_each_query(shape).on(device), dbias_parts;
  if (options.bias.defined()) {
    const ScratchTensor parts = diagonals_of_tiles(shape);
    dbias_parts = Tensor::zeros(parts.shape, parts.dtype, device);
  }
  with_element(dout.dtype(), [&]<typename T>(T*) {
    const Backward<T> work{.task = {shape, options},
                           .q = elements<T>(saved.q),
                           .k = elements<T>(saved.k),
                           .v = elements<T>(saved.v),
                           .out = elements<T>(saved.out),
                           .dout = elements<T>(dout),
                           .lse = elements<float>(saved.lse),
                           .delta = elements<float>(delta),
                           .dq = elements<T>(gradients.dq),
                           .dk = elements<T>(gradients.dk),
                           .dv = elements<T>(gradients.dv),
                           .dbias_parts = options.bias.defined() ? elements<float>(dbias_parts) : nullptr};
    with_columns(shape.head_dim, [&](auto columns) { launch_gradients<columns.value>(work, device); });
  });
  if (!options.bias.defined() || gradients.dbias.count() == 0) return;
  launch("attention_backward", device, grid_for(gradients.dbias.count()), dbias_kernel, shape,
         elements<float>(std::as_const(dbias_parts)), elements<float>(gradients.dbias));
}

}  // namespace trainyard::ops::cuda
