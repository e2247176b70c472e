#pragma once

#include "ops/attention_mask.h"
#include "ops/cuda/attention_scratch.h"
#include "ops/cuda/launch.cuh"
#include "ops/dropout_mask.h"

// Attention by tiles of kTile queries and kTile keys, in float32 on the ordinary units: any head size, any mask, no
// atomics. The 256 threads of a block stand 16 by 16: thread (y, x) has rows 4y … 4y + 3 of a tile and columns 4x …
// 4x + 3, of wider ones those of every 64. A block makes kColumns elements of a head's vectors and computes the scores
// again for the next ones, so that sums stay in registers whatever the head size is.
namespace trainyard::ops::cuda {

constexpr int kDepth = 32;                ///< of a product, staged at a time
constexpr int kTileStride = kTile + 4;    ///< 16-byte aligned, and columns do not all fall on one bank
constexpr int kSide = 4, kThreadsX = 16;  ///< a thread's part of a tile; threads in a row of them
static_assert(kThreads * kSide * kSide == kTile * kTile);

struct AttentionTask {
  AttentionShape shape;
  Visibility visibility;
  float scale;
  const float* bias;  ///< null: none
  int64_t q_offset;
  const int64_t* sequences;  ///< null: nothing is dropped
  uint64_t seed;
  int64_t first_head;
  DropoutRate rate;

  AttentionTask(const AttentionShape& of, const AttentionOptions& options)
      : shape(of),
        visibility(of, options),
        scale(options.scale),
        bias(options.bias.defined() ? elements<float>(options.bias) : nullptr),
        q_offset(options.q_offset),
        sequences(options.dropout.rate > 0 ? elements<int64_t>(options.dropout.sequences) : nullptr),
        seed(options.dropout.seed),
        first_head(options.dropout.first_head),
        rate(options.dropout.rate) {}
};

/// Which part of the work is this block's.
struct Place {
  int64_t row, head, tile;
  int64_t first_token;            ///< of the tile
  int64_t first_column, columns;  ///< of the slice, and how many of the head's are left from there on

  /// The place of a block in a grid of rows × heads × tiles of tokens × slices.
  __device__ Place(int64_t heads, int64_t tokens, int64_t head_dim, int slice) {
    const int64_t slices = (head_dim + slice - 1) / slice, tiles = tiles_of(tokens);
    int64_t rest = blockIdx.x;
    first_column = rest % slices * slice, rest /= slices;
    columns = head_dim - first_column;
    tile = rest % tiles, rest /= tiles;
    first_token = tile * kTile;
    head = rest % heads, row = rest / heads;
  }
};

/// Some tokens' vectors of one head.
template <typename T>
struct Rows {
  T* data;
  int64_t stride;
  int count;

  [[nodiscard]] __device__ Rows from_column(int64_t column) const { return {data + column, stride, count}; }
};

/// `first` counts within the batch row; at most a tile of tokens from there on.
template <typename T>
__device__ Rows<T> rows_of(T* data, int64_t row, int64_t tokens, int64_t first, int64_t head, int64_t heads,
                           int64_t head_dim) {
  const int64_t width = heads * head_dim;
  return {data + (row * tokens + first) * width + head * head_dim, width,
          static_cast<int>(std::min<int64_t>(tokens - first, kTile))};
}

struct TileMemory {
  alignas(16) float staged[2 * kDepth * kTileStride];
  alignas(16) float weights[kTile * kTileStride];
  int begin[kTile], end[kTile];  ///< the keys that each query of the tile sees
};

__device__ inline int thread_x() {
  return static_cast<int>(threadIdx.x) % kThreadsX;
}
__device__ inline int thread_y() {
  return static_cast<int>(threadIdx.x) / kThreadsX;
}

/// Tells the block what each query of its tile sees, and returns what any of them does. Each thread calls it.
__device__ inline Range see(const AttentionTask& task, int64_t row, int64_t first_query, TileMemory& memory) {
  for (int i = static_cast<int>(threadIdx.x); i < kTile; i += kThreads) {
    const int64_t query = first_query + i;
    const Range keys = query < task.shape.q_tokens ? task.visibility.keys_of(row, query) : Range{0, 0};
    memory.begin[i] = static_cast<int>(keys.begin), memory.end[i] = static_cast<int>(keys.end);
  }
  __syncthreads();
  Range all{task.shape.kv_tokens, 0};
  for (int i = 0; i < kTile; ++i)
    if (memory.begin[i] < memory.end[i])
      all = {std::min<int64_t>(all.begin, memory.begin[i]), std::max<int64_t>(all.end, memory.end[i])};
  __syncthreads();  // the next tile's are written there
  return all;
}

/// sums[row, column] += Σ a[d, row] · b[d, column], of kColumns columns.
template <int kColumns>
__device__ void multiply_add(const float* a, const float* b, int b_stride, int depth,
                             float (&sums)[kSide][kColumns / kThreadsX]) {
  for (int d = 0; d < depth; ++d) {
    const auto left = load<kSide>(a + d * kTileStride, thread_y());
    for (int group = 0; group < kColumns / kTile; ++group) {
      const auto right = load<kSide>(b + d * b_stride + group * kTile, thread_x());
      for (int i = 0; i < kSide; ++i)
        for (int j = 0; j < kSide; ++j) sums[i][group * kSide + j] += left.values[i] * right.values[j];
    }
  }
}

/// to[d, row] = rows[row, first + d], 0 past the ends.
template <typename T>
__device__ void stage_transposed(const Rows<const T>& rows, int64_t first, int depth, float* to) {
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kDepth; i += kThreads) {
    const int row = i / kDepth, d = i % kDepth;
    const bool is_there = row < rows.count && d < depth;
    to[d * kTileStride + row] = is_there ? to_float(rows.data[row * rows.stride + first + d]) : 0.0F;
  }
}

/// scores[i, j] = a[i] · b[j].
template <typename T>
__device__ void dot_rows(const Rows<const T>& a, const Rows<const T>& b, int64_t head_dim, TileMemory& memory,
                         float (&scores)[kSide][kSide]) {
  for (auto& row : scores)
    for (float& score : row) score = 0;
  float *const left = memory.staged, *const right = memory.staged + kDepth * kTileStride;
  for (int64_t first = 0; first < head_dim; first += kDepth) {
    const int depth = static_cast<int>(std::min<int64_t>(head_dim - first, kDepth));
    stage_transposed(a, first, depth, left);
    stage_transposed(b, first, depth, right);
    __syncthreads();
    multiply_add<kTile>(left, right, kTileStride, depth, scores);
    __syncthreads();
  }
}

/// sums[row, column] += Σ memory.weights[token, row] · rows[token, column] over the tokens; 0 past the last column.
template <int kColumns, typename T>
__device__ void add_weighted(const Rows<const T>& rows, int64_t columns, TileMemory& memory,
                             float (&sums)[kSide][kColumns / kThreadsX]) {
  static_assert(kColumns <= 2 * kTileStride);
  for (int first = 0; first < rows.count; first += kDepth) {
    const int depth = std::min(rows.count - first, int{kDepth});  // a device has its value, not its address
    for (int i = static_cast<int>(threadIdx.x); i < kDepth * kColumns; i += kThreads) {
      const int row = i / kColumns, column = i % kColumns;
      const bool is_there = row < depth && column < columns;
      memory.staged[i] = is_there ? to_float(rows.data[(first + row) * rows.stride + column]) : 0.0F;
    }
    __syncthreads();
    multiply_add<kColumns>(memory.weights + first * kTileStride, memory.staged, kColumns, depth, sums);
    __syncthreads();
  }
}

/// rows[i, column] = sums[i, column] · factors[i], rounded.
template <int kColumns, typename T>
__device__ void store_rows(const float (&sums)[kSide][kColumns / kThreadsX], const float (&factors)[kSide],
                           const Rows<T>& rows, int64_t columns) {
  for (int i = 0; i < kSide; ++i)
    for (int j = 0; j < kColumns / kThreadsX; ++j) {
      const int row = kSide * thread_y() + i, column = j / kSide * kTile + kSide * thread_x() + j % kSide;
      if (row < rows.count && column < columns)
        rows.data[row * rows.stride + column] = from_float<T>(sums[i][j] * factors[i]);
    }
}

/// One pair of tiles, of one head.
struct TilePair {
  int64_t row, head, first_query, first_key;
};

/// Products of queries and keys become scores, −infinity where hidden.
__device__ inline void finish_scores(const AttentionTask& task, const TilePair& at, const TileMemory& memory,
                                     float (&scores)[kSide][kSide]) {
  for (int i = 0; i < kSide; ++i)
    for (int j = 0; j < kSide; ++j) {
      const int row = kSide * thread_y() + i;
      const int64_t query = at.first_query + row, key = at.first_key + kSide * thread_x() + j;
      const bool is_seen = key >= memory.begin[row] && key < memory.end[row];
      float score = scores[i][j] * task.scale;
      if (task.bias && is_seen) score += *bias_at(task.bias, task.shape, at.head, query, key);
      scores[i][j] = is_seen ? score : -INFINITY;
    }
}

/// values[query, key] times 0 or 1 / (1 - rate).
__device__ inline void drop(const AttentionTask& task, const TilePair& at, float (&values)[kSide][kSide]) {
  if (!task.sequences) return;
  for (int i = 0; i < kSide; ++i) {
    const int64_t query = at.first_query + kSide * thread_y() + i;
    const auto token =
        static_cast<uint64_t>(task.first_head + at.head) << 32U | static_cast<uint64_t>(task.q_offset + query);
    const DropoutStream stream(task.seed, task.sequences[at.row], token);
    for (int j = 0; j < kSide; ++j) {
      const auto key = static_cast<uint32_t>(at.first_key + kSide * thread_x() + j);
      values[i][j] *= dropout_bits(stream, key) < task.rate.threshold ? 0.0F : task.rate.scale;
    }
  }
}

/// memory.weights[key, query], for sums over keys; or [query, key], for sums over queries.
template <bool kByKey>
__device__ void keep_weights(const float (&values)[kSide][kSide], TileMemory& memory) {
  for (int i = 0; i < kSide; ++i) {
    Pack<float, kSide> pack;
    for (int j = 0; j < kSide; ++j) pack.values[j] = kByKey ? values[j][i] : values[i][j];
    const int row = kSide * (kByKey ? thread_x() : thread_y()) + i;
    store<kSide>(memory.weights + row * kTileStride, kByKey ? thread_y() : thread_x(), pack);
  }
}

/// Calls body with the columns that a block makes of vectors of this size, as std::integral_constant.
template <typename Body>
void with_columns(int64_t head_dim, const Body& body) {
  if (head_dim <= kTile)
    body(std::integral_constant<int, kTile>{});
  else
    body(std::integral_constant<int, 2 * kTile>{});
}

inline Grid attention_grid(const AttentionShape& shape, int64_t heads, int64_t tokens, int columns) {
  return {.blocks = shape.batch * heads * tiles_of(tokens) * ((shape.head_dim + columns - 1) / columns)};
}

}  // namespace trainyard::ops::cuda
