#pragma once

#include <vector>

#include "autograd/functions.h"
#include "nn/module.h"
#include "tensor/chunk.h"

namespace trainyard::nn {

struct Heads {
  int64_t query = 0, key_value = 0, dim = 0;
  int64_t window = 0;  ///< how many of the last keys a query sees, its own included; 0: all
  /// Where the query heads are a part of the model's and begin or end inside a group that shares a KV head: the KV head
  /// of each, by its number here. Empty: query / key_value heads share each.
  std::vector<int64_t> kv_head_of = {};
};

/// Those of the model's heads that are here, where `q_weight` [heads · dim, in] makes the queries of some.
Heads heads_here(const Heads& heads, const Parameter& q_weight);

/// The first KV head that `count` query heads from `first` on of `heads` need, and how many they need.
Rows kv_heads_of(const Heads& heads, Rows query_heads);

/// Keys and values of the tokens so far, of one attention layer and one row.
struct KeyValueCache {
  int64_t capacity = 0;  ///< tokens that there is room for
  Tensor keys, values;   ///< [capacity, kv_heads · head_dim], of the dtype of the first that came; undefined before
  int64_t length = 0;    ///< tokens held

  /// Rows that join those held. Throws std::invalid_argument where there is no room for them.
  void append(const Tensor& new_keys, const Tensor& new_values);
};

struct DecoderContext;

/// Attention of rows whose tokens lie on several ranks: what context parallelism puts in its place from outside.
class SplitAttention {
 public:
  virtual ~SplitAttention() = default;
  /// Causal attention of whole rows with scale dim^-½. q [rows · tokens, heads · dim], k and v are those of this rank's
  /// tokens, and so is what it gives. Collective over the ranks that share the rows.
  virtual Variable attend(const Variable& q, const Variable& k, const Variable& v, const Heads& heads, int layer,
                          const DecoderContext& context) = 0;
};

/// What every block of a decoder needs beside its input. Cheap to copy.
struct DecoderContext {
  int64_t rows = 0, tokens = 0;  ///< the blocks' input has rows · tokens rows
  Tensor positions;              ///< int32 [rows · tokens]
  Tensor
      document_starts;  ///< int32 [rows · tokens]: index in its row of each token's document; undefined: a row is one
  ops::RopeTables rope;
  std::vector<KeyValueCache>* caches = nullptr;  ///< while generating: one a layer, and rows is 1
  SplitAttention* split = nullptr;               ///< where the rows are parts of longer ones; document starts are
                                                 ///< indices in those then
  int64_t whole_tokens = 0;                      ///< with `split`: of a whole row
  Tensor whole_document_starts = {};             ///< with `split`: int32 [whole rows · whole_tokens]
};

/// The tokens of x; without the padding behind them that tensor parallelism leaves where ranks do not divide them.
inline Variable tokens_of(const Variable& x, const DecoderContext& context) {
  return autograd::first_rows(x, context.rows * context.tokens);
}

/// RMS norm of each head (nn/layers.h) and then rotary positions: the same as rotate() of it, in one pass.
class RotaryNorm : public Module {
 public:
  RotaryNorm(std::string name, int64_t head_dim, float eps)
      : Module(std::move(name)), weight_(add_parameter("weight", {head_dim}, kOnes)), eps_(eps) {}
  Variable operator()(const Variable& x, const DecoderContext& context) const;

 private:
  Parameter& weight_;
  float eps_;
};

/// Rotary positions (Su et al. 2021) on the heads of x [rows · tokens, heads · dim].
Variable rotate(const Variable& x, const DecoderContext& context);

/// What the scores are multiplied by.
float attention_scale(const Heads& heads);

/// Causal attention with scale dim^-½, inside each document and each query's window. With caches, `layer`'s takes k and
/// v in and q sees all it holds.
Variable causal_attention(const Variable& q, const Variable& k, const Variable& v, const Heads& heads, int layer,
                          const DecoderContext& context);

}  // namespace trainyard::nn
