// The Transformer of PyTorch's FSDP2 example (pytorch/examples, distributed/FSDP2), under its names: pre-norm blocks
// with LayerNorm and GELU, learned positions, attention without a mask. The example minimises the sum of its outputs.
#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "models/family.h"
#include "models/model.h"
#include "nn/layers.h"
#include "nn/remembered.h"

namespace trainyard::models {
namespace {

using nn::Variable;

/// What the blocks need beside their input.
struct Rows {
  int64_t rows = 0, tokens = 0;
  nn::DropoutContext dropout;
};

class Attention : public nn::Module {
 public:
  Attention(const std::string& name, const ModelConfig& c)
      : Module(name),
        heads_(c.heads),
        head_dim_(c.head_dim),
        wq_(nn::uniform_linear(name_of("wq"), c.hidden_size, c.hidden_size)),
        wk_(nn::uniform_linear(name_of("wk"), c.hidden_size, c.hidden_size)),
        wv_(nn::uniform_linear(name_of("wv"), c.hidden_size, c.hidden_size)),
        wo_(nn::uniform_linear(name_of("wo"), c.hidden_size, c.hidden_size)),
        dropout_(name),
        residual_dropout_(name_of("resid_dropout")) {
    add_child(wq_), add_child(wk_), add_child(wv_), add_child(wo_);
  }

  Variable operator()(const Variable& x, const Rows& of) const {
    const ops::AttentionShape shape{of.rows, of.tokens, of.tokens, heads_, heads_, head_dim_};
    const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(head_dim_)));
    const Variable mixed = autograd::attention(wq_(x), wk_(x), wv_(x), shape,
                                               {.scale = scale, .causal = false, .dropout = dropout_.in(of.dropout)});
    return residual_dropout_(wo_(mixed), of.dropout);
  }

 private:
  int64_t heads_, head_dim_;
  nn::Linear wq_, wk_, wv_, wo_;
  nn::DropoutSite dropout_, residual_dropout_;
};

class FeedForward : public nn::Module {
 public:
  FeedForward(const std::string& name, const ModelConfig& c)
      : Module(name),
        w1_(nn::uniform_linear(name_of("w1"), c.hidden_size, c.intermediate_size, nn::Bias::Yes)),
        w2_(nn::uniform_linear(name_of("w2"), c.intermediate_size, c.hidden_size, nn::Bias::Yes)),
        residual_dropout_(name_of("resid_dropout")) {
    add_child(w1_), add_child(w2_);
  }

  Variable operator()(const Variable& x, const Rows& of) const {
    return residual_dropout_(w2_(autograd::activation(ops::Activation::Gelu, w1_(x))), of.dropout);
  }

 private:
  nn::Linear w1_, w2_;
  nn::DropoutSite residual_dropout_;
};

/// [rows · tokens, dim] → the same.
class Block : public nn::Module {
 public:
  Block(const ModelConfig& c, int layer)
      : Module("layers." + std::to_string(layer)),
        attention_norm_(name_of("attention_norm"), c.hidden_size),
        attention_(name_of("attention"), c),
        ffn_norm_(name_of("ffn_norm"), c.hidden_size),
        feed_forward_(name_of("feed_forward"), c) {
    add_child(attention_norm_), add_child(attention_), add_child(ffn_norm_), add_child(feed_forward_);
  }
  [[nodiscard]] std::string_view class_name() const override { return "TransformerBlock"; }

  Variable operator()(const Variable& input, const Rows& of) const {
    return run(input, [this, of](const Variable& x) {
      const Variable h = add(x, attention_(attention_norm_(x), of));
      return add(h, feed_forward_(ffn_norm_(h), of));
    });
  }

 private:
  nn::LayerNorm attention_norm_;
  Attention attention_;
  nn::LayerNorm ffn_norm_;
  FeedForward feed_forward_;
};

/// Reads of a batch: input_ids.
class Tutorial : public Model {
 public:
  explicit Tutorial(const ModelConfig& c)
      : Model(""),
        config_(c),
        tok_embeddings_("tok_embeddings", c.vocab_size, c.hidden_size, {nn::Init::Kind::Normal, 1}),
        pos_embeddings_("pos_embeddings", c.max_positions, c.hidden_size, {nn::Init::Kind::Normal, 1}),
        dropout_("dropout"),
        norm_("norm", c.hidden_size),
        output_(nn::uniform_linear("output", c.hidden_size, c.vocab_size)) {
    add_child(tok_embeddings_), add_child(pos_embeddings_);
    for (int layer = 0; layer < c.layers; ++layer) add_child(*layers_.emplace_back(std::make_unique<Block>(c, layer)));
    add_child(norm_), add_child(output_);
  }

  /// The sum of all outputs.
  ops::Loss loss(const Inputs& inputs, const Pass& pass) override {
    Tensor sum;
    run_root(pass.tape, [&] { sum = autograd::sum(outputs(inputs, pass), pass.gradient_scale); });
    return {sum, inputs.valid_tokens};
  }

  /// The example takes the sum over each rank's batch, and FSDP the mean over the ranks.
  [[nodiscard]] double loss_weight(const Batch& batch) const override { return batch.input_ids.count() > 0 ? 1 : 0; }

  [[nodiscard]] std::vector<nn::Module*> blocks() override {
    std::vector<nn::Module*> all;
    for (const auto& layer : layers_) all.push_back(layer.get());
    return all;
  }
  [[nodiscard]] const ModelConfig& config() const override { return config_; }

 private:
  /// [rows · tokens, vocab]
  [[nodiscard]] Variable outputs(const Inputs& inputs, const Pass& pass) const {
    const Tensor& ids = inputs.input_ids;
    if (ids.size(1) > config_.max_positions)
      throw InputError(fmt::format("rows of {} tokens, but the model has {} positions (max_seq_len)", ids.size(1),
                                   config_.max_positions));
    const Rows of{ids.size(0), ids.size(1), dropout_of(config_.dropout, inputs, pass)};
    const Variable tokens = tok_embeddings_(ids.reshape({ids.count()}), pass.tape);
    const Tensor& places = counted_.get({of.rows, of.tokens}, device(), [&] { return positions(of); });
    Variable h = dropout_(add(tokens, pos_embeddings_(places, pass.tape)), of.dropout);
    for (const auto& layer : layers_) h = (*layer)(h, of);
    return output_(norm_(h));
  }

  /// 0, 1, 2, … in each row.
  static Tensor positions(const Rows& of) {
    Tensor positions = Tensor::empty({of.rows * of.tokens}, DType::Int32);
    for (int64_t row = 0; row < of.rows; ++row) {
      Tensor own = positions.rows(row * of.tokens, of.tokens);
      std::iota(own.values<int32_t>().begin(), own.values<int32_t>().end(), 0);
    }
    return positions;
  }

  ModelConfig config_;
  nn::Embedding tok_embeddings_, pos_embeddings_;
  nn::DropoutSite dropout_;
  std::vector<std::unique_ptr<Block>> layers_;
  nn::LayerNorm norm_;
  nn::Linear output_;
  mutable nn::Remembered<std::pair<int64_t, int64_t>> counted_;  // positions of [rows, tokens]
};

/// The fields of the example's ModelArgs. Its feed-forward layers are four times as wide as the model.
ModelConfig read_tutorial(const Fields& fields) {
  ModelConfig c;
  c.vocab_size = fields.size("vocab_size");
  c.hidden_size = fields.size("dim", 16);
  c.intermediate_size = 4 * c.hidden_size;
  c.layers = fields.size("n_layers");
  c.heads = c.kv_heads = fields.size("n_heads", 4);
  c.max_positions = fields.size("max_seq_len");
  c.dropout = fields.rate("dropout_p", 0.1);
  if (c.hidden_size % c.heads != 0)
    fields.fail("dim", fmt::format("is {}; it must be a multiple of n_heads, which is {}", c.hidden_size, c.heads));
  c.head_dim = c.hidden_size / c.heads;
  return c;
}

nlohmann::json write_tutorial(const ModelConfig& c) {
  return {{"vocab_size", c.vocab_size}, {"dim", c.hidden_size},           {"n_layers", c.layers},
          {"n_heads", c.heads},         {"max_seq_len", c.max_positions}, {"dropout_p", c.dropout}};
}

/// The model that example.py makes.
ModelConfig example() {
  ModelConfig c{.family = "tutorial", .vocab_size = 1024, .hidden_size = 16, .intermediate_size = 64, .layers = 10};
  c.heads = c.kv_heads = c.head_dim = 4;
  c.max_positions = 64;
  return c;
}

/// 6 for each weight of a product, 12 · heads · head_dim for each pair of tokens in a layer.
double tutorial_flops_per_row(const ModelConfig& c, const RowLengths& lengths) {
  const int64_t block = 4 * c.hidden_size * c.hidden_size + 2 * c.hidden_size * c.intermediate_size;
  const int64_t products = c.layers * block + c.vocab_size * c.hidden_size;
  return static_cast<double>(lengths.tokens) *
         (6.0 * static_cast<double>(products) + 12.0 * static_cast<double>(c.layers * c.hidden_size * lengths.tokens));
}

}  // namespace

const Family& tutorial() {
  static const Family family{
      .name = "tutorial",
      .architecture = "Transformer",
      .block_class = "TransformerBlock",
      .presets = {{"tutorial", example()}},
      .read = read_tutorial,
      .write = write_tutorial,
      .build = [](const ModelConfig& config) -> std::unique_ptr<Model> { return std::make_unique<Tutorial>(config); },
      .trains_with = {"dropout_p"},
      .flops_per_row = tutorial_flops_per_row};
  return family;
}

}  // namespace trainyard::models
