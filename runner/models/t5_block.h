#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/config.h"
#include "nn/attention.h"
#include "nn/dropout.h"
#include "nn/layers.h"
#include "nn/relative_positions.h"
#include "nn/remembered.h"

namespace trainyard::models {

/// Keys and values that one decoder block keeps while it makes texts side by side.
struct T5Cache {
  int64_t rows = 0, capacity = 0;     ///< texts, and tokens that each has room for
  int64_t length = 0;                 ///< tokens a row that are held
  Tensor keys, values;                ///< [rows · capacity, heads · head_dim], zero where no token is yet
  Tensor source_keys, source_values;  ///< [rows · source tokens, heads · head_dim]; all four from the first token on

  /// The next tokens of each row. Throws std::invalid_argument where there is no room for them.
  void append(const Tensor& new_keys, const Tensor& new_values);
};

/// What the blocks of one stack need beside their input.
struct T5Context {
  int64_t rows = 0, tokens = 0;
  Tensor lengths;     ///< int32 [rows]: real tokens of each row of this stack's own input; undefined: all
  nn::Variable bias;  ///< by relative position; the first block makes it, all use it
  nn::DropoutContext dropout;
  nn::Variable source;  ///< the encoder's output; only in the decoder
  int64_t source_tokens = 0;
  Tensor source_lengths;
  std::vector<T5Cache>* caches = nullptr;  ///< while generating: one a block
};

/// How transformers' T5 begins its norms: at initializer_factor.
inline nn::Init t5_norm_init(const ModelConfig& config) {
  return {nn::Init::Kind::Constant, static_cast<float>(config.initializer_range)};
}

enum class T5Stack { Encoder, Decoder };

/// Attention without a scale: T5's first weights have it in them.
class T5Attention : public nn::Module {
 public:
  T5Attention(const std::string& name, const ModelConfig& config, int layer);

 protected:
  struct KeyValues {
    nn::Variable keys, values;
    int64_t tokens = 0;  ///< a row
  };
  [[nodiscard]] KeyValues key_values(const nn::Variable& of, int64_t tokens) const { return {k_(of), v_(of), tokens}; }
  /// `bias` empty: none.
  [[nodiscard]] nn::Variable mix(const nn::Variable& x, const KeyValues& seen, const T5Context& context,
                                 ops::AttentionOptions options, const nn::Variable& bias = {}) const;
  /// This layer's; null where no text is made.
  [[nodiscard]] T5Cache* cache_of(const T5Context& context) const {
    return context.caches ? &context.caches->at(static_cast<size_t>(layer_)) : nullptr;
  }

 private:
  nn::Heads heads_;
  int layer_;
  nn::Linear q_, k_, v_, o_;
  nn::DropoutSite dropout_;
};

/// Attention of a stack's tokens to each other, with the context's bias; in the decoder to those before them.
class T5SelfAttention : public T5Attention {
 public:
  T5SelfAttention(const std::string& name, const ModelConfig& config, T5Stack stack, int layer)
      : T5Attention(name, config, layer), is_causal_(stack == T5Stack::Decoder) {}
  nn::Variable operator()(const nn::Variable& x, const T5Context& context) const;

 private:
  [[nodiscard]] nn::Variable forward(const nn::Variable& x, const nn::Variable& bias, const T5Context& context) const;

  bool is_causal_;
};

/// Attention of the decoder's tokens to the encoder's output.
class T5CrossAttention : public T5Attention {
 public:
  using T5Attention::T5Attention;
  nn::Variable operator()(const nn::Variable& x, const T5Context& context) const;

 private:
  [[nodiscard]] nn::Variable forward(const nn::Variable& x, const nn::Variable& source, const T5Context& context) const;
};

/// wo(dropout(relu(wi x))), or with a gate wo(dropout(gelu(wi_0 x) · wi_1 x)).
class T5FeedForward : public nn::Module {
 public:
  T5FeedForward(const std::string& name, const ModelConfig& config);
  nn::Variable operator()(const nn::Variable& x, const nn::DropoutContext& dropout) const;

 private:
  [[nodiscard]] nn::Variable forward(const nn::Variable& x, const nn::DropoutContext& dropout) const;
  /// Dropout of what goes into the last layer.
  [[nodiscard]] nn::Variable dropped(const nn::Variable& x, const nn::DropoutContext& dropout) const;

  nn::Linear in_;
  std::optional<nn::Linear> up_;  // of the gated form
  nn::Linear out_;
  nn::DropoutSite dropout_;
};

/// A block of either stack, Hugging Face's T5Block: [rows · tokens, hidden] → the same. The first of a stack holds the
/// table of relative positions and leaves its bias in the context.
class T5Block : public nn::Module {
 public:
  T5Block(const ModelConfig& config, T5Stack stack, int layer);
  [[nodiscard]] std::string_view class_name() const override { return "T5Block"; }
  nn::Variable operator()(const nn::Variable& x, T5Context& context);

 private:
  [[nodiscard]] nn::Variable make_bias(const T5Context& context, nn::Tape* tape) const;
  [[nodiscard]] nn::Variable forward(const nn::Variable& x, const T5Context& context) const;

  nn::RelativeBuckets buckets_;
  mutable nn::Remembered<std::array<int64_t, 3>> bucket_of_;  // each distance, by what relative_buckets() is given
  nn::RmsNorm attention_norm_;
  T5SelfAttention attention_;
  std::optional<nn::Embedding> bias_;  // [buckets, heads]
  std::optional<nn::RmsNorm> cross_norm_;
  std::optional<T5CrossAttention> cross_;
  nn::RmsNorm feed_forward_norm_;
  T5FeedForward feed_forward_;
  nn::DropoutSite attention_dropout_, cross_dropout_, feed_forward_dropout_;
};

}  // namespace trainyard::models
