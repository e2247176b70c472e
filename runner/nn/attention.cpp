#include "nn/attention.h"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

namespace trainyard::nn {
namespace {

void append_rows(Tensor& held, const KeyValueCache& cache, const Tensor& rows) {
  if (cache.length + rows.size(0) > cache.capacity)
    throw std::invalid_argument(fmt::format("key-value cache: {} tokens after {} in a cache of {}", rows.size(0),
                                            cache.length, cache.capacity));
  if (!held.defined()) held = Tensor::empty({cache.capacity, rows.size(1)}, rows.dtype(), rows.device());
  Tensor place = held.rows(cache.length, rows.size(0));
  copy(rows, place);
}

}  // namespace

void KeyValueCache::append(const Tensor& new_keys, const Tensor& new_values) {
  append_rows(keys, *this, new_keys);
  append_rows(values, *this, new_values);
  length += new_keys.size(0);
}

Rows kv_heads_of(const Heads& heads, Rows query_heads) {
  const int64_t group = heads.query / heads.key_value, first = query_heads.begin / group;
  const int64_t end = query_heads.count == 0 ? first : (query_heads.begin + query_heads.count - 1) / group + 1;
  return {first, end - first};
}

Heads heads_here(const Heads& heads, const Parameter& q_weight) {
  if (!q_weight.is_split()) return heads;
  const Rows query{q_weight.part().begin / heads.dim, q_weight.shape()[0] / heads.dim}, kv = kv_heads_of(heads, query);
  const int64_t group = heads.query / heads.key_value;
  Heads here{query.count, kv.count, heads.dim, heads.window};
  const bool is_even = kv.count == 1 || (query.begin % group == 0 && query.count % group == 0);
  for (int64_t head = 0; !is_even && head < query.count; ++head)
    here.kv_head_of.push_back((query.begin + head) / group - kv.begin);
  return here;
}

Variable rotate(const Variable& x, const DecoderContext& context) {
  return autograd::rope(x, context.positions, context.rope);
}

Variable RotaryNorm::operator()(const Variable& input, const DecoderContext& context) const {
  return run(input, [this, places = ops::RopePlaces{context.positions, context.rope}](const Variable& x) {
    return autograd::rms_norm_rope(x, weight_, eps_, places);
  });
}

float attention_scale(const Heads& heads) {
  return 1.0F / std::sqrt(static_cast<float>(heads.dim));
}

Variable causal_attention(const Variable& q, const Variable& k, const Variable& v, const Heads& heads, int layer,
                          const DecoderContext& context) {
  if (!heads.kv_head_of.empty()) {
    const Heads alike{heads.query, heads.query, heads.dim, heads.window};  // a KV head for each
    return causal_attention(q, autograd::select_heads(k, heads.dim, heads.kv_head_of),
                            autograd::select_heads(v, heads.dim, heads.kv_head_of), alike, layer, context);
  }
  if (context.split) return context.split->attend(q, k, v, heads, layer, context);
  ops::AttentionShape shape{context.rows, context.tokens, context.tokens, heads.query, heads.key_value, heads.dim};
  ops::AttentionOptions options{.scale = attention_scale(heads),
                                .document_starts = context.document_starts,
                                .window = heads.window};
  if (!context.caches) return autograd::attention(q, k, v, shape, options);

  KeyValueCache& cache = context.caches->at(static_cast<size_t>(layer));
  options.q_offset = cache.length;
  cache.append(k.value(), v.value());
  shape.kv_tokens = cache.length;
  const Variable keys(cache.keys.rows(0, cache.length)), values(cache.values.rows(0, cache.length));
  return autograd::attention(q, keys, values, shape, options);
}

}  // namespace trainyard::nn
