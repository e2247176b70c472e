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

Variable rotate(const Variable& x, const DecoderContext& context) {
  return autograd::rope(x, context.positions, context.rope);
}

Variable RotaryNorm::operator()(const Variable& input, const DecoderContext& context) const {
  return run(input, [this, places = ops::RopePlaces{context.positions, context.rope}](const Variable& x) {
    return autograd::rms_norm_rope(x, weight_, eps_, places);
  });
}

Variable causal_attention(const Variable& q, const Variable& k, const Variable& v, const Heads& heads, int layer,
                          const DecoderContext& context) {
  ops::AttentionShape shape{context.rows, context.tokens, context.tokens, heads.query, heads.key_value, heads.dim};
  ops::AttentionOptions options{.scale = 1.0F / std::sqrt(static_cast<float>(heads.dim)),
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
