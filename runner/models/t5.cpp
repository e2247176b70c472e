// T5 v1.0 and v1.1 (Raffel et al. 2020; Shazeer 2020), under the names of Hugging Face's T5ForConditionalGeneration.
#include "models/t5_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "models/language_model.h"
#include "models/t5_block.h"

namespace trainyard::models {
namespace {

using nn::Variable;

/// One of the two stacks: embedded tokens through its blocks to the final norm.
class Stack : public nn::Module {
 public:
  Stack(const ModelConfig& c, T5Stack kind, int64_t layers)
      : Module(kind == T5Stack::Encoder ? "encoder" : "decoder"),
        final_norm_(name_of("final_layer_norm"), c.hidden_size, static_cast<float>(c.rms_norm_eps), t5_norm_init(c)),
        embedding_dropout_(name_of("embedding")),
        final_dropout_(name_of("final")) {
    for (int layer = 0; layer < layers; ++layer)
      add_child(*blocks_.emplace_back(std::make_unique<T5Block>(c, kind, layer)));
    add_child(final_norm_);
  }

  Variable operator()(const Variable& embedded, const T5Context& outside) const {
    return run(embedded, [this, outside](const Variable& x) {
      T5Context context = outside;  // in which the first block leaves the bias for the others
      Variable h = embedding_dropout_(x, context.dropout);
      for (const auto& block : blocks_) h = (*block)(h, context);
      return final_dropout_(final_norm_(h), context.dropout);
    });
  }

  [[nodiscard]] const std::vector<std::unique_ptr<T5Block>>& blocks() const { return blocks_; }

 private:
  std::vector<std::unique_ptr<T5Block>> blocks_;
  nn::RmsNorm final_norm_;
  nn::DropoutSite embedding_dropout_, final_dropout_;
};

/// Reads of a batch: input_ids and input_lengths, the source, padded at its end; targets, what the decoder must say.
class T5 : public LanguageModel {
 public:
  explicit T5(const ModelConfig& config)
      : LanguageModel(""),
        config_(config),
        shared_("shared", config.vocab_size, config.hidden_size, init_of(config)),
        encoder_(config_, T5Stack::Encoder, config.layers),
        decoder_(config_, T5Stack::Decoder, config.t5.decoder_layers) {
    add_child(shared_), add_child(encoder_), add_child(decoder_);
    shared_.set_shared();  // by both stacks, and by a tied head
    if (!config.tied_head) add_child(head_.emplace("lm_head", config.hidden_size, config.vocab_size, init_of(config)));
  }

  [[nodiscard]] Inputs inputs(const Batch& batch) const override {
    if (!batch.input_ids.defined() || !batch.targets.defined() || batch.targets.shape().size() != 2)
      throw InputError(
          "a t5 model learns from pairs of a source and a target: data.source_field and data.target_field");
    Inputs inputs(batch, device());
    inputs.decoder_input_ids = on_device(shifted_right(batch.targets), device());
    return inputs;
  }

  ops::Loss loss(const Inputs& inputs, const Pass& pass) override {
    ops::Loss result;
    run_root(pass.tape, [&] {
      const Variable h = hidden(inputs, pass);
      run_head(pass.tape, [&] { result = output_head().loss(h, head(), inputs.targets, pass.gradient_scale); });
    });
    return result;
  }

  Tensor logits(const Batch& batch) override {
    Tensor logits;
    const Inputs inputs = this->inputs(batch);
    run_root(nullptr, [&] { logits = head_product(hidden(inputs, {}), inputs.decoder_input_ids.count()); });
    return logits.reshape({batch.targets.size(0), batch.targets.size(1), config_.vocab_size});
  }

  std::unique_ptr<Texts> begin(const Prompts& prompts, int64_t new_tokens) override;
  [[nodiscard]] bool continues_prompt() const override { return false; }

  [[nodiscard]] std::vector<nn::Module*> blocks() override {
    std::vector<nn::Module*> all;
    for (const Stack* const stack : {&encoder_, &decoder_})
      for (const auto& block : stack->blocks()) all.push_back(block.get());
    return all;
  }
  [[nodiscard]] const ModelConfig& config() const override { return config_; }

 private:
  class Answers;

  [[nodiscard]] nn::Parameter& head() const { return head_ ? head_->weight() : shared_.weight(); }
  /// Runs `body` as the forward of the head, where it is a module of its own.
  void run_head(nn::Tape* tape, const std::function<void()>& body) const {
    head_ ? head_->run_root(tape, body) : body();
  }

  Tensor head_product(const Variable& h, int64_t tokens) const {
    Tensor logits;
    run_head(nullptr, [&] { logits = output_head().logits(output_head().whole(h, tokens), head()).value(); });
    return logits;
  }

  /// The head of v1.0 takes the decoder's output times hidden^-½ (the convention of mesh-tensorflow).
  [[nodiscard]] Variable before_head(const Variable& h) const {
    if (!config_.t5.scales_output) return h;
    return autograd::scale(h, static_cast<float>(1 / std::sqrt(static_cast<double>(config_.hidden_size))));
  }

  /// What the decoder reads: the start token, then the targets but the last, kIgnored as the pad token.
  [[nodiscard]] Tensor shifted_right(const Tensor& targets) const {
    const int64_t rows = targets.size(0), tokens = targets.size(1);
    Tensor shifted = Tensor::empty({rows, tokens}, DType::Int32);
    const auto from = targets.values<int32_t>();
    const auto to = shifted.values<int32_t>();
    for (size_t i = 0; i < to.size(); ++i) {
      const bool is_first = static_cast<int64_t>(i) % tokens == 0;
      const int32_t before = is_first ? config_.t5.start_token : from[i - 1];
      to[i] = before == data::kIgnored ? config_.t5.pad_token : before;
    }
    return shifted;
  }

  [[nodiscard]] Variable hidden(const Inputs& inputs, const Pass& pass) const {
    nn::DropoutContext dropout = dropout_of(config_.dropout, inputs, pass);
    dropout.piece = output_head().piece();
    T5Context context{.rows = inputs.input_ids.size(0), .tokens = inputs.input_ids.size(1)};
    context.lengths = inputs.input_lengths, context.dropout = dropout;
    context.dropout.tokens = context.tokens;
    const Variable source = encoder_(embedded(inputs.input_ids, pass.tape), context);
    T5Context answer{.rows = inputs.decoder_input_ids.size(0), .tokens = inputs.decoder_input_ids.size(1)};
    answer.dropout = dropout;
    answer.dropout.tokens = answer.tokens;
    answer.source = source, answer.source_tokens = context.tokens, answer.source_lengths = inputs.input_lengths;
    return before_head(decoder_(embedded(inputs.decoder_input_ids, pass.tape), answer));
  }

  [[nodiscard]] Variable embedded(const Tensor& ids, nn::Tape* tape) const {
    return shared_(on_device(ids.reshape({ids.count()}), device()), tape);
  }

  ModelConfig config_;
  nn::Embedding shared_;
  Stack encoder_, decoder_;
  std::optional<nn::Linear> head_;  // none where it is tied to the embedding
};

/// Answers to sources side by side, a token of each at a time. The sources go through the encoder with the first.
class T5::Answers : public Texts {
 public:
  Answers(T5& model, const Prompts& sources, int64_t capacity)
      : Texts(std::vector<int32_t>(sources.size(), model.config_.t5.start_token)),
        model_(model),
        rows_(static_cast<int64_t>(sources.size())) {
    take(sources);
    for (int64_t layer = 0; layer < model.config_.t5.decoder_layers; ++layer)
      caches_.push_back({.rows = rows_, .capacity = capacity});
  }

  Tensor next(const std::vector<int32_t>& ids) override {
    if (static_cast<int64_t>(ids.size()) != rows_)
      throw std::invalid_argument(fmt::format("t5: {} ids for {} texts", ids.size(), rows_));
    Tensor logits;
    model_.run_root(nullptr, [&] {
      if (!source_.defined()) source_ = encoded();
      T5Context context{.rows = rows_, .tokens = 1};
      context.source = Variable(source_), context.source_tokens = source_tokens_;
      context.source_lengths = source_lengths_, context.caches = &caches_;
      const Variable h = model_.decoder_(model_.embedded(Tensor::from<int32_t>(ids, {rows_}), nullptr), context);
      logits = model_.head_product(model_.before_head(h), rows_);
    });
    return logits;
  }

 private:
  void take(const Prompts& sources) {
    source_lengths_ = Tensor::empty({rows_}, DType::Int32);
    for (const auto& source : sources) source_tokens_ = std::max(source_tokens_, static_cast<int64_t>(source.size()));
    source_ids_ = Tensor::empty({rows_ * source_tokens_}, DType::Int32);
    const auto ids = source_ids_.values<int32_t>();
    std::ranges::fill(ids, model_.config_.t5.pad_token);
    for (size_t row = 0; row < sources.size(); ++row) {
      std::ranges::copy(sources[row], ids.subspan(row * static_cast<size_t>(source_tokens_)).begin());
      source_lengths_.values<int32_t>()[row] = static_cast<int32_t>(sources[row].size());
    }
    source_lengths_ = on_device(source_lengths_, model_.device());
  }

  [[nodiscard]] Tensor encoded() const {
    T5Context context{.rows = rows_, .tokens = source_tokens_};
    context.lengths = source_lengths_;
    return model_.encoder_(model_.embedded(source_ids_, nullptr), context).value();
  }

  T5& model_;
  int64_t rows_, source_tokens_ = 0;
  Tensor source_ids_, source_lengths_, source_;
  std::vector<T5Cache> caches_;
};

std::unique_ptr<Texts> T5::begin(const Prompts& prompts, int64_t new_tokens) {
  return std::make_unique<Answers>(*this, prompts, new_tokens + 1);
}

/// Both inputs of a gated feed-forward are split.
nn::Placements placements() {
  using enum nn::Placement;
  return {{"shared", Vocabulary},
          {"lm_head", Vocabulary},
          {"encoder", Encoder},
          {"*Attention", Region},
          {"*Attention.[qkv]", Column, nn::Unit::QueryHead},
          {"*Attention.o", Row, nn::Unit::QueryHead},
          {"*.relative_attention_bias", Row, nn::Unit::QueryHead},
          {"*.DenseReluDense", Region},
          {"*.DenseReluDense.wi*", Column},
          {"*.DenseReluDense.wo", Row}};
}

}  // namespace

const Family& t5() {
  static const Family family{
      .name = "t5",
      .architecture = "T5ForConditionalGeneration",
      .block_class = "T5Block",
      .presets = t5_presets(),
      .read = read_t5,
      .write = write_t5,
      .build = [](const ModelConfig& config) -> std::unique_ptr<Model> { return std::make_unique<T5>(config); },
      .placements = placements(),
      .stored = {.embedding = "shared.weight",
                 .head = "lm_head.weight",
                 .may_lack_head = true,
                 .copies = {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight"},
                 .ignored = {"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"}},
      .trains_with = {"dropout_rate"},
      .learns_from = LearnsFrom::Pairs,
      .flops_per_row = t5_flops_per_row};
  return family;
}

}  // namespace trainyard::models
