#pragma once

#include <algorithm>
#include <vector>

#include "ops/attention_mask.h"
#include "ops/cpu/convert_rows.h"
#include "ops/cpu/gemm.h"
#include "ops/cpu/simd.h"

namespace trainyard::ops::cpu {

// Block sizes. A block of scores is 64 queries by up to 256 keys: with the operands it stays in the second-level cache,
// and a causal row wastes no more than half a 64 × 64 corner beyond the diagonal. Rows of it lie kScoreStride apart: at
// a power of two the transposed products of backward fall on few sets of the first-level cache (64 against 85 GFLOP/s).
constexpr int64_t kQueryBlock = 64, kKeyBlock = 256, kScoreStride = kKeyBlock + 16;

/// The columns of a block of keys that each of its queries sees.
struct BlockColumns {
  std::vector<int32_t> begin = std::vector<int32_t>(kQueryBlock), end = std::vector<int32_t>(kQueryBlock);

  void set(const Visibility& visibility, int64_t row, Range queries, Range keys) {
    for (int64_t query = queries.begin; query < queries.end; ++query) {
      const Range seen = visibility.keys_of(row, query);
      const auto index = static_cast<size_t>(query - queries.begin);
      begin[index] = static_cast<int32_t>(std::clamp(seen.begin, keys.begin, keys.end) - keys.begin);
      end[index] = static_cast<int32_t>(std::clamp(seen.end, keys.begin, keys.end) - keys.begin);
    }
  }
};

/// The part of a row of scores that a query sees, widened to whole groups of kGroup with −infinity, so that the loops
/// over it need no remainder: at 64 tokens a row is 32 long on average, and remainders took most of the time.
struct MaskedRow {
  float* scores;
  int64_t count;  ///< a multiple of kGroup
};
constexpr int64_t kGroup = 16;

/// Hides the columns outside [begin, end) of a row: −infinity next to what is seen, 0 farther away, where softmax does
/// not go. The row has room for whole groups (kScoreStride).
TRAINYARD_INLINE MaskedRow mask_row(float* row, int64_t begin, int64_t end, int64_t columns) {
  const int64_t first = begin & ~(kGroup - 1), last = begin < end ? (end + kGroup - 1) & ~(kGroup - 1) : first;
  for (int64_t i = 0; i < first; ++i) row[i] = 0;
  for (int64_t i = first; i < std::min(begin, last); ++i) row[i] = -__builtin_inff();
  for (int64_t i = std::max(end, first); i < last; ++i) row[i] = -__builtin_inff();
  for (int64_t i = last; i < columns; ++i) row[i] = 0;
  return {row + first, last - first};
}

/// scores[row, column] += bias by the distance of key and query. `bias` is at the block's first query and first key;
/// the next query's lies one element before.
void add_bias(float* scores, const float* bias, int64_t rows, int64_t columns);

/// The way back: bias += scores' gradients, summed along the diagonals.
void add_to_bias(const float* gradients, float* bias, int64_t rows, int64_t columns);

/// The dropout of a block's probabilities: its values times 0 or 1 / (1 - rate).
class BlockDropout {
 public:
  explicit BlockDropout(const AttentionOptions& options) : options_(options) {}
  [[nodiscard]] bool drops() const { return options_.dropout.rate > 0; }

  /// `values` [queries, keys], kScoreStride apart; `head` counts within a row of the batch.
  void apply(float* values, int64_t row, int64_t head, Range queries, Range keys) const;

 private:
  const AttentionOptions& options_;
};

/// One head of a [tokens, heads * head_dim] tensor, from its first token of a batch row on.
template <typename T>
struct Head {
  T* data;
  int64_t stride;

  [[nodiscard]] T* at(int64_t token) const { return data + token * stride; }
};

template <typename T>
Head<T> head_of(T* data, int64_t first_token, int64_t head, int64_t heads, int64_t head_dim) {
  return {data + (first_token * heads + head) * head_dim, heads * head_dim};
}

/// Makes blocks of float32 values into factors of products with T. They are rounded copies, or for float32 the values
/// themselves.
template <typename T>
class RoundedBlock {
 public:
  /// `values` lie kScoreStride apart. Good until the next call.
  Factor<T> of(const float* values, int64_t rows, int64_t columns) {
    convert_rows(values, kScoreStride, rounded_.data(), kScoreStride, rows, columns);
    return {rounded_.data(), kScoreStride};
  }

 private:
  std::vector<T> rounded_ = std::vector<T>(kQueryBlock * kScoreStride);
};

template <>
class RoundedBlock<float> {
 public:
  static Factor<float> of(const float* values, int64_t, int64_t) { return {values, kScoreStride}; }
};

/// Tells where the float32 sums of the tokens of a head lie until they are whole. Those of a float32 head lie in the
/// head itself, and others in room of their own.
template <typename T>
class HeadSums {
 public:
  HeadSums(int64_t tokens, int64_t head_dim)
      : head_dim_(head_dim), sums_(static_cast<size_t>(tokens * head_dim)) {}

  [[nodiscard]] Head<float> of(Head<T>) { return {sums_.data(), head_dim_}; }

  /// Rounds the sums of the first `tokens` tokens to `head`.
  void round_to(Head<T> head, int64_t tokens) {
    convert_rows(sums_.data(), head_dim_, head.data, head.stride, tokens, head_dim_);
  }

 private:
  int64_t head_dim_;
  std::vector<float> sums_;
};

template <>
class HeadSums<float> {
 public:
  HeadSums(int64_t, int64_t) {}
  [[nodiscard]] static Head<float> of(Head<float> head) { return head; }
  static void round_to(Head<float>, int64_t) {}
};

/// One row of a batch as a batch of one. What the processor does not multiply is computed row by row in float32, so
/// that the converted copies are of one row at a time.
struct AttentionRow {
  AttentionShape shape;
  AttentionOptions options;
  int64_t row;

  AttentionRow(const AttentionShape& whole, const AttentionOptions& whole_options, int64_t index)
      : shape(whole), options(whole_options), row(index) {
    shape.batch = 1;
    if (options.document_starts.defined()) options.document_starts = queries(options.document_starts);
    if (options.key_lengths.defined()) options.key_lengths = options.key_lengths.rows(row, 1);
    if (options.dropout.rate > 0) options.dropout.sequences = options.dropout.sequences.rows(row, 1);
  }

  [[nodiscard]] Tensor queries(const Tensor& all) const { return all.rows(row * shape.q_tokens, shape.q_tokens); }
  [[nodiscard]] Tensor keys(const Tensor& all) const { return all.rows(row * shape.kv_tokens, shape.kv_tokens); }
};

}  // namespace trainyard::ops::cpu
