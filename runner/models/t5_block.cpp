#include "models/t5_block.h"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>
#include <utility>

namespace trainyard::models {
namespace {

using nn::Variable;

/// The deviations of transformers: initializer_factor · size^-½.
nn::Init init(const ModelConfig& c, int64_t size) {
  return {nn::Init::Kind::Normal, static_cast<float>(c.initializer_range / std::sqrt(static_cast<double>(size)))};
}

nn::RmsNorm norm(const std::string& name, const ModelConfig& c) {
  return {name, c.hidden_size, static_cast<float>(c.rms_norm_eps), t5_norm_init(c)};
}

std::string block_name(T5Stack stack, int layer) {
  return (stack == T5Stack::Encoder ? "encoder.block." : "decoder.block.") + std::to_string(layer);
}

}  // namespace

void T5Cache::append(const Tensor& new_keys, const Tensor& new_values) {
  const int64_t tokens = new_keys.size(0) / rows;
  if (length + tokens > capacity)
    throw std::invalid_argument(fmt::format("T5Cache: {} tokens after {} in a cache of {}", tokens, length, capacity));
  for (Tensor* const held : {&keys, &values})
    if (!held->defined())
      *held = Tensor::zeros({rows * capacity, new_keys.size(1)}, new_keys.dtype(), new_keys.device());
  for (int64_t row = 0; row < rows; ++row)
    for (const auto& [from, to] : {std::pair{&new_keys, &keys}, std::pair{&new_values, &values}}) {
      Tensor place = to->rows(row * capacity + length, tokens);
      copy(from->rows(row * tokens, tokens), place);
    }
  length += tokens;
}

T5Attention::T5Attention(const std::string& name, const ModelConfig& c, int layer)
    : Module(name),
      heads_{c.heads, c.heads, c.head_dim},
      layer_(layer),
      q_(name_of("q"), c.hidden_size, c.heads * c.head_dim, init(c, c.hidden_size * c.head_dim)),
      k_(name_of("k"), c.hidden_size, c.heads * c.head_dim, init(c, c.hidden_size)),
      v_(name_of("v"), c.hidden_size, c.heads * c.head_dim, init(c, c.hidden_size)),
      o_(name_of("o"), c.heads * c.head_dim, c.hidden_size, init(c, c.heads * c.head_dim)),
      dropout_(name) {
  add_child(q_), add_child(k_), add_child(v_), add_child(o_);
}

Variable T5Attention::mix(const Variable& x, const KeyValues& seen, const T5Context& context,
                          ops::AttentionOptions options, const Variable& bias) const {
  const nn::Heads heads = nn::heads_here(heads_, q_.weight());
  options.dropout = dropout_.in(context.dropout);
  options.dropout.first_head = q_.weight().part().begin / heads.dim;
  const ops::AttentionShape shape{context.rows, context.tokens, seen.tokens, heads.query, heads.key_value, heads.dim};
  return o_(autograd::attention(q_(x), seen.keys, seen.values, shape, options, bias));
}

Variable T5SelfAttention::operator()(const Variable& x, const T5Context& context) const {
  return run({x, context.bias},
             [this, context](std::span<const Variable> in) { return forward(in[0], in[1], context); });
}

Variable T5SelfAttention::forward(const Variable& given, const Variable& bias, const T5Context& context) const {
  const Variable x = autograd::first_rows(given, context.rows * context.tokens);  // without padding behind them
  ops::AttentionOptions options{.causal = is_causal_};
  options.key_lengths = context.lengths;
  KeyValues seen = key_values(x, context.tokens);
  if (T5Cache* const cache = cache_of(context)) {
    options.q_offset = cache->length;  // so the mask hides what is not there yet
    cache->append(seen.keys.value(), seen.values.value());
    seen = {Variable(cache->keys), Variable(cache->values), cache->capacity};
  }
  return mix(x, seen, context, options, bias);
}

Variable T5CrossAttention::operator()(const Variable& x, const T5Context& context) const {
  return run({x, context.source},
             [this, context](std::span<const Variable> in) { return forward(in[0], in[1], context); });
}

Variable T5CrossAttention::forward(const Variable& given, const Variable& given_source,
                                   const T5Context& context) const {
  const Variable x = autograd::first_rows(given, context.rows * context.tokens),
                 source = autograd::first_rows(given_source, context.rows * context.source_tokens);
  ops::AttentionOptions options{.causal = false};
  options.key_lengths = context.source_lengths;
  T5Cache* const cache = cache_of(context);
  if (!cache) return mix(x, key_values(source, context.source_tokens), context, options);
  if (!cache->source_keys.defined()) {
    const KeyValues made = key_values(source, context.source_tokens);
    cache->source_keys = made.keys.value(), cache->source_values = made.values.value();
  }
  return mix(x, {Variable(cache->source_keys), Variable(cache->source_values), context.source_tokens}, context,
             options);
}

T5FeedForward::T5FeedForward(const std::string& name, const ModelConfig& c)
    : Module(name),
      in_(name_of(c.t5.is_gated ? "wi_0" : "wi"), c.hidden_size, c.intermediate_size, init(c, c.hidden_size)),
      out_(name_of("wo"), c.intermediate_size, c.hidden_size, init(c, c.intermediate_size)),
      dropout_(name) {
  add_child(in_);
  if (c.t5.is_gated)
    add_child(up_.emplace(name_of("wi_1"), c.hidden_size, c.intermediate_size, init(c, c.hidden_size)));
  add_child(out_);
}

Variable T5FeedForward::operator()(const Variable& x, const nn::DropoutContext& dropout) const {
  return run(x, [this, dropout](const Variable& input) { return forward(input, dropout); });
}

Variable T5FeedForward::dropped(const Variable& x, const nn::DropoutContext& dropout) const {
  return dropout_.of_columns(x, dropout, out_.weight().part().begin);
}

Variable T5FeedForward::forward(const Variable& x, const nn::DropoutContext& dropout) const {
  if (!up_) return out_(dropped(autograd::activation(ops::Activation::Relu, in_(x)), dropout));
  const Variable gate = autograd::activation(ops::Activation::GeluTanh, in_(x));
  return out_(dropped(autograd::multiply(gate, (*up_)(x)), dropout));
}

T5Block::T5Block(const ModelConfig& c, T5Stack stack, int layer)
    : Module(block_name(stack, layer)),
      buckets_{.count = c.t5.buckets, .max_distance = c.t5.max_distance, .both_directions = stack == T5Stack::Encoder},
      attention_norm_(norm(name_of("layer.0.layer_norm"), c)),
      attention_(name_of("layer.0.SelfAttention"), c, stack, layer),
      feed_forward_norm_(norm(name_of(stack == T5Stack::Encoder ? "layer.1.layer_norm" : "layer.2.layer_norm"), c)),
      feed_forward_(name_of(stack == T5Stack::Encoder ? "layer.1.DenseReluDense" : "layer.2.DenseReluDense"), c),
      attention_dropout_(name_of("attention")),
      cross_dropout_(name_of("cross_attention")),
      feed_forward_dropout_(name_of("feed_forward")) {
  add_child(attention_norm_), add_child(attention_);
  if (layer == 0)
    add_child(bias_.emplace(name_of("layer.0.SelfAttention.relative_attention_bias"), c.t5.buckets, c.heads,
                            init(c, c.hidden_size)));
  if (stack == T5Stack::Decoder) {
    add_child(cross_norm_.emplace(name_of("layer.1.layer_norm"), c.hidden_size, static_cast<float>(c.rms_norm_eps),
                                  t5_norm_init(c)));
    add_child(cross_.emplace(name_of("layer.1.EncDecAttention"), c, layer));
  }
  add_child(feed_forward_norm_), add_child(feed_forward_);
}

Variable T5Block::operator()(const Variable& x, T5Context& context) {
  Variable y;
  run_root(x.tape(), [&] {
    // Outside what is recomputed: the other blocks use it too, so its gradient is whole only after theirs.
    if (bias_) context.bias = make_bias(context, x.tape());
    std::vector<Variable> inputs{x, context.bias};
    if (cross_) inputs.push_back(context.source);
    y = recomputed(std::move(inputs), [this, context](std::span<const Variable> in) {
      T5Context inside = context;
      inside.bias = in[1];
      if (cross_) inside.source = in[2];
      return forward(in[0], inside);
    });
  });
  return y;
}

Variable T5Block::make_bias(const T5Context& context, nn::Tape* tape) const {
  const int64_t before = context.caches ? context.caches->front().length : 0;
  const int64_t kv_tokens = context.caches ? context.caches->front().capacity : context.tokens;
  const Tensor buckets = bucket_of_.get({before, context.tokens, kv_tokens}, bias_->weight().value().device(), [&] {
    return nn::relative_buckets(before, context.tokens, kv_tokens, buckets_);
  });
  return bias_->run(tape, [&] { return autograd::relative_bias(buckets, bias_->weight(), tape); });
}

Variable T5Block::forward(const Variable& x, const T5Context& context) const {
  const nn::RmsNorm& next = cross_ ? *cross_norm_ : feed_forward_norm_;
  auto [h, normed] = next.of_sum(x, attention_dropout_(attention_(attention_norm_(x), context), context.dropout));
  if (cross_) {
    const auto after = feed_forward_norm_.of_sum(h, cross_dropout_((*cross_)(normed, context), context.dropout));
    h = after.sum, normed = after.norm;
  }
  return autograd::add(h, feed_forward_dropout_(feed_forward_(normed, context.dropout), context.dropout));
}

}  // namespace trainyard::models
