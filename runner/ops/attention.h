#pragma once

#include <compare>

#include "ops/dropout.h"
#include "tensor/tensor.h"

namespace trainyard::ops {

struct AttentionShape {
  int64_t batch = 0;
  int64_t q_tokens = 0;   ///< a row
  int64_t kv_tokens = 0;  ///< a row
  int64_t heads = 0;
  int64_t kv_heads = 0;  ///< divides heads; query head h uses KV head h / (heads / kv_heads)
  int64_t head_dim = 0;
  auto operator<=>(const AttentionShape&) const = default;
};

struct AttentionOptions {
  float scale = 1;       ///< multiplies q · k; usually head_dim^-½
  bool causal = true;    ///< key j is visible to query i of a row only if j <= q_offset + i
  int64_t q_offset = 0;  ///< position of the first query: with a KV cache kv_tokens − q_tokens, else 0
  /// Packed documents: [batch * q_tokens] int32, for each query the index in its row of its document's first key;
  /// keys before it are hidden. Undefined: the whole row is one document. Only with `causal`.
  Tensor document_starts;
  /// What document_starts count from: the index in its row of the first key, where the keys are a part of a row. A
  /// document that begins before it, begins with it here.
  int64_t document_offset = 0;
  /// Sliding window: a query sees the last `window` of the keys that it would see, its own included. 0: all of them.
  /// Only with `causal`.
  int64_t window = 0;
  /// Padding: [batch] int32, the number of keys of each row that are visible at all. Undefined: kv_tokens.
  Tensor key_lengths;
  /// Added to the scores, by distance: [heads, q_tokens + kv_tokens - 1] float32, the same for each row. Query i and
  /// key j take element j - i + q_tokens - 1. Undefined: none. Only with kv_heads = heads.
  Tensor bias;
  /// It drops probabilities: token t of the mask is head · 2³² + q_offset + i, its column j. Rate 0: none.
  Dropout dropout;
};

/// Softmax attention in blocks (FlashAttention-2, Dao 2023): no tokens × tokens matrix is ever kept, blocks that the
/// mask hides are skipped. Any head_dim. float32, bfloat16 or float16, all of one dtype; sums and softmax in float32.
///   q, out  [batch * q_tokens, heads * head_dim]      k, v  [batch * kv_tokens, kv_heads * head_dim]
///   lse     [batch, heads, q_tokens] float32: log Σ exp(scale · q · k) over the visible keys, kept for backward
/// A query that sees no key gets out = 0 and lse = −infinity. The same bits for any number of threads.
/// Throws std::invalid_argument where shapes, dtypes or document starts do not fit.
void attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionShape& shape,
               const AttentionOptions& options, Tensor& out, Tensor& lse);

/// What attention() read and wrote.
struct AttentionSaved {
  const Tensor &q, &k, &v, &out, &lse;
};

struct AttentionGradients {
  Tensor dq;      ///< like q
  Tensor dk, dv;  ///< like k and v
  Tensor dbias;   ///< like options.bias; undefined where that is
};

/// Gradients, written, not added; none may overlap dout. Recomputes the probabilities block by block from lse.
void attention_backward(const Tensor& dout, const AttentionSaved& saved, const AttentionShape& shape,
                        const AttentionOptions& options, AttentionGradients gradients);

}  // namespace trainyard::ops
