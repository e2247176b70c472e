#include "nn/attention.h"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

namespace trainyard::nn {
namespace {

/// Appends rows to the first `length` rows of `held` and returns all of them.
Tensor appended(Tensor& held, int64_t length, const Tensor& rows) {
  if (length + rows.size(0) > held.size(0))
    throw std::invalid_argument(
        fmt::format("key-value cache: {} tokens after {} in a cache of {}", rows.size(0), length, held.size(0)));
  Tensor place = held.rows(length, rows.size(0));
  copy(rows, place);
  return held.rows(0, length + rows.size(0));
}

}  // namespace

Variable rotate(const Variable& x, const DecoderContext& context) {
  return autograd::rope(x, context.positions, context.rope);
}

Variable causal_attention(const Variable& q, const Variable& k, const Variable& v, const Heads& heads, int layer,
                          const DecoderContext& context) {
  ops::AttentionShape shape{context.rows, context.tokens, context.tokens, heads.query, heads.key_value, heads.dim};
  ops::AttentionOptions options{.scale = 1.0F / std::sqrt(static_cast<float>(heads.dim)),
                                .document_starts = context.document_starts,
                                .window = heads.window};
  if (!context.caches) return autograd::attention(q, k, v, shape, options);

  KeyValueCache& cache = context.caches->at(static_cast<size_t>(layer));
  const Variable keys(appended(cache.keys, cache.length, k.value())),
      values(appended(cache.values, cache.length, v.value()));
  options.q_offset = cache.length;
  cache.length += context.tokens;
  shape.kv_tokens = cache.length;
  return autograd::attention(q, keys, values, shape, options);
}

}  // namespace trainyard::nn
