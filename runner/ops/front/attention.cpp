#include "ops/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "metrics/trace.h"
#include "ops/check.h"
#include "ops/cost.h"
#include "ops/kernels.h"

namespace trainyard::ops {
namespace {

void require_sizes(std::string_view op, const AttentionShape& shape, const AttentionOptions& options) {
  const bool valid = shape.batch >= 0 && shape.q_tokens >= 0 && shape.kv_tokens >= 0 && shape.head_dim > 0 &&
                     shape.kv_heads > 0 && shape.heads > 0 && shape.heads % shape.kv_heads == 0 &&
                     options.q_offset >= 0 && options.document_offset >= 0 && options.window >= 0;
  if (!valid)
    throw std::invalid_argument(
        fmt::format("{}: batch {}, tokens {} and {}, heads {}, KV heads {}, head size {}, offset {}, window {}: KV "
                    "heads must divide heads and no size may be negative",
                    op, shape.batch, shape.q_tokens, shape.kv_tokens, shape.heads, shape.kv_heads, shape.head_dim,
                    options.q_offset, options.window));
  if (options.document_starts.defined() && !options.causal)
    throw std::invalid_argument(fmt::format("{}: document starts are for causal attention only", op));
  if (options.window > 0 && !options.causal)
    throw std::invalid_argument(fmt::format("{}: a window is for causal attention only", op));
  if (options.bias.defined() && shape.heads != shape.kv_heads)
    throw std::invalid_argument(
        fmt::format("{}: a bias takes as many KV heads as heads, not {} and {}", op, shape.kv_heads, shape.heads));
}

Shape bias_shape(const AttentionShape& shape) {
  return {shape.heads, std::max<int64_t>(shape.q_tokens + shape.kv_tokens - 1, 0)};
}

void require_options(std::string_view op, const AttentionShape& shape, const AttentionOptions& options) {
  if (options.document_starts.defined()) {
    require(op, "document_starts", options.document_starts, {shape.batch * shape.q_tokens}, DType::Int32);
    require_indices(op, "document_starts", options.document_starts,
                    options.document_offset + options.q_offset + shape.q_tokens);
  }
  if (options.key_lengths.defined()) {
    require(op, "key_lengths", options.key_lengths, {shape.batch}, DType::Int32);
    require_indices(op, "key_lengths", options.key_lengths, shape.kv_tokens + 1);
  }
  if (options.bias.defined()) require(op, "bias", options.bias, bias_shape(shape), DType::Float32);
  if (options.dropout.rate == 0) return;
  require_dropout(op, options.dropout);
  require_count(op, "dropout.sequences", options.dropout.sequences, shape.batch);
}

void require_inputs(std::string_view op, const AttentionSaved& saved, const AttentionShape& shape,
                    const AttentionOptions& options) {
  require_sizes(op, shape, options);
  const Shape queries{shape.batch * shape.q_tokens, shape.heads * shape.head_dim};
  const Shape keys{shape.batch * shape.kv_tokens, shape.kv_heads * shape.head_dim};
  require_floating(op, "q", saved.q);
  require(op, "q", saved.q, queries, saved.q.dtype());
  require(op, "k", saved.k, keys, saved.q.dtype());
  require(op, "v", saved.v, keys, saved.q.dtype());
  require(op, "out", saved.out, queries, saved.q.dtype());
  require(op, "lse", saved.lse, {shape.batch, shape.heads, shape.q_tokens}, DType::Float32);
  require_options(op, shape, options);
}

/// Pairs of a query and a key that it sees, of a row and head. A causal square counts as half of one.
double seen_pairs(const AttentionShape& shape, const AttentionOptions& options) {
  const auto queries = static_cast<double>(shape.q_tokens), keys = static_cast<double>(shape.kv_tokens);
  if (!options.causal) return queries * keys;
  if (shape.q_tokens == shape.kv_tokens && options.q_offset == 0) return 0.5 * queries * keys;
  const auto first = static_cast<double>(options.q_offset + 1);  // keys of the first query; each one more, up to all
  const double rising = std::clamp(keys - first, 0.0, queries);
  return rising * (first + (rising - 1) / 2) + (queries - rising) * keys;
}

/// One product of every query with its keys, or of their weights with the values. Blocks that are masked are skipped.
double product_flops(const AttentionShape& shape, const AttentionOptions& options) {
  return 2.0 * static_cast<double>(shape.batch * shape.heads * shape.head_dim) * seen_pairs(shape, options);
}

}  // namespace

void attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionShape& shape,
               const AttentionOptions& options, Tensor& out, Tensor& lse) {
  const metrics::TraceSpan span("attention", "op");
  require_inputs("attention", {q, k, v, out, lse}, shape, options);
  tell_cost({&q, &k, &v, &out}, 2 * product_flops(shape, options));
  kernel("attention", &Kernels::attention,
         {&q, &k, &v, &out, &lse, &options.document_starts, &options.key_lengths, &options.bias,
          &options.dropout.sequences})(q, k, v, shape, options, out, lse);
}

void attention_backward(const Tensor& dout, const AttentionSaved& saved, const AttentionShape& shape,
                        const AttentionOptions& options, AttentionGradients gradients) {
  const metrics::TraceSpan span("attention_backward", "op");
  require_inputs("attention_backward", saved, shape, options);
  require("attention_backward", "dout", dout, saved.q.shape(), saved.q.dtype());
  require("attention_backward", "dq", gradients.dq, saved.q.shape(), saved.q.dtype());
  require("attention_backward", "dk", gradients.dk, saved.k.shape(), saved.q.dtype());
  require("attention_backward", "dv", gradients.dv, saved.k.shape(), saved.q.dtype());
  if (options.bias.defined())
    require("attention_backward", "dbias", gradients.dbias, options.bias.shape(), DType::Float32);
  // The scores are computed again: five products where forward has two.
  tell_cost({&dout, &saved.q, &saved.k, &saved.v, &saved.out, &gradients.dq, &gradients.dk, &gradients.dv},
            5 * product_flops(shape, options));
  kernel("attention_backward", &Kernels::attention_backward,
         {&dout, &saved.q, &saved.k, &saved.v, &saved.out, &saved.lse, &gradients.dq, &gradients.dk, &gradients.dv,
          &gradients.dbias, &options.document_starts, &options.key_lengths, &options.bias, &options.dropout.sequences})(
      dout, saved, shape, options, gradients);
}

}  // namespace trainyard::ops
