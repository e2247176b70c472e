#include "models/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "models/rope_frequencies.h"
#include "tensor/stream_graph.h"

namespace trainyard::models {
namespace {

/// 0, 1, 2, … from `first` on in each row.
Tensor counted_positions(int64_t rows, int64_t tokens, int64_t first) {
  Tensor positions = Tensor::empty({rows * tokens}, DType::Int32);
  for (int64_t row = 0; row < rows; ++row) {
    Tensor of_row = positions.rows(row * tokens, tokens);
    std::iota(of_row.values<int32_t>().begin(), of_row.values<int32_t>().end(), static_cast<int32_t>(first));
  }
  return positions;
}

std::optional<int64_t> padding_idx_of(const ModelConfig& config) {
  if (!config.pad_token_id || *config.pad_token_id >= 0) return config.pad_token_id;
  return config.vocab_size + *config.pad_token_id;
}

}  // namespace

RotaryAttention::RotaryAttention(const std::string& name, const ModelConfig& c, int layer, nn::Bias bias)
    : Module(name),
      q_proj_(name_of("q_proj"), c.hidden_size, c.heads * c.head_dim, init_of(c), bias),
      k_proj_(name_of("k_proj"), c.hidden_size, c.kv_heads * c.head_dim, init_of(c), bias),
      v_proj_(name_of("v_proj"), c.hidden_size, c.kv_heads * c.head_dim, init_of(c), bias),
      o_proj_(name_of("o_proj"), c.heads * c.head_dim, c.hidden_size, init_of(c)),
      heads_(heads_of(c, layer)),
      layer_(layer) {
  add_child(q_proj_), add_child(k_proj_), add_child(v_proj_), add_child(o_proj_);
}

nn::Variable RotaryAttention::operator()(const nn::Variable& input, const nn::DecoderContext& context) const {
  return run(input, [this, context](const nn::Variable& given) {
    const nn::Variable x = nn::tokens_of(given, context);
    const nn::Variable q = nn::rotate(q_proj_(x), context), k = nn::rotate(k_proj_(x), context);
    const nn::Heads heads = nn::heads_here(heads_, q_proj_.weight());
    return o_proj_(nn::causal_attention(q, k, v_proj_(x), heads, layer_, context));
  });
}

Decoder::Decoder(const ModelConfig& config, const MakeBlock& make_block)
    : LanguageModel(""),
      config_(config),
      stack_("model"),
      embed_tokens_("model.embed_tokens", config.vocab_size, config.hidden_size, init_of(config),
                    padding_idx_of(config)),
      norm_("model.norm", config.hidden_size, static_cast<float>(config.rms_norm_eps)) {
  add_child(stack_);
  stack_.add_child(embed_tokens_);
  for (int layer = 0; layer < config.layers; ++layer)
    stack_.add_child(*layers_.emplace_back(make_block(config, layer)));
  stack_.add_child(norm_);
  if (config.tied_head) {
    embed_tokens_.set_shared();
  } else {
    add_child(head_.emplace("lm_head", config.hidden_size, config.vocab_size, init_of(config)));
  }
}

ops::Loss Decoder::loss(const Inputs& inputs, const Pass& pass) {
  ops::Loss result;
  run_root(pass.tape, [&] {
    const nn::Variable h = hidden(inputs.input_ids, context_of(inputs), pass.tape);
    run_head(pass.tape, [&] { result = output_head().loss(h, head(), inputs.targets, pass.gradient_scale); });
  });
  return result;
}

Tensor Decoder::logits(const Batch& batch) {
  Tensor logits;
  const Inputs inputs = this->inputs(batch);
  run_root(nullptr, [&] {
    const nn::Variable h = hidden(inputs.input_ids, context_of(inputs), nullptr);
    run_head(nullptr,
             [&] { logits = output_head().logits(output_head().whole(h, inputs.input_ids.count()), head()).value(); });
  });
  return logits.reshape({batch.input_ids.size(0), batch.input_ids.size(1), config_.vocab_size});
}

/// A prompt and what follows it, with the keys and values of each layer.
class Decoder::Continuation : public Texts {
 public:
  Continuation(Decoder& model, const std::vector<int32_t>& prompt, int64_t capacity) : Texts(prompt), model_(model) {
    for (int64_t layer = 0; layer < model.config_.layers; ++layer) caches_.push_back({.capacity = capacity});
  }

  Tensor next(const std::vector<int32_t>& ids) override {
    const auto count = static_cast<int64_t>(ids.size());
    Tensor logits;
    model_.run_root(nullptr, [&] {
      const int64_t before = caches_.front().length;
      const nn::DecoderContext context{1,
                                       count,
                                       on_device(counted_positions(1, count, before), model_.device()),
                                       {},
                                       model_.rope_tables(before + count),
                                       &caches_};
      const Tensor there = on_device(Tensor::from<int32_t>(ids, {1, count}), model_.device());
      const nn::Variable h = model_.hidden(there, context, nullptr);
      nn::OutputHead& output = model_.output_head();
      model_.run_head(nullptr, [&] {
        const nn::Variable last(output.whole(h, count).value().rows(count - 1, 1));
        logits = output.logits(last, model_.head()).value();
      });
    });
    return logits;
  }

 private:
  Decoder& model_;
  std::vector<nn::KeyValueCache> caches_;
};

std::unique_ptr<Texts> Decoder::begin(const Prompts& prompts, int64_t new_tokens) {
  if (prompts.size() != 1)
    throw std::invalid_argument(fmt::format("a decoder makes one text at a time, not {}", prompts.size()));
  return std::make_unique<Continuation>(*this, prompts[0], static_cast<int64_t>(prompts[0].size()) + new_tokens);
}

std::vector<nn::Module*> Decoder::blocks() {
  std::vector<nn::Module*> blocks;
  for (const auto& layer : layers_) blocks.push_back(layer.get());
  return blocks;
}

nn::Variable Decoder::hidden(const Tensor& input_ids, const nn::DecoderContext& context, nn::Tape* tape) {
  return stack_.run(tape, [&] {
    nn::Variable h = embed_tokens_(input_ids.reshape({input_ids.count()}), tape);
    for (const auto& layer : layers_) h = (*layer)(h, context);
    return norm_(h);
  });
}

nn::DecoderContext Decoder::context_of(const Inputs& inputs) {
  nn::DecoderContext context{.rows = inputs.input_ids.size(0), .tokens = inputs.input_ids.size(1)};
  if (inputs.position_ids.defined()) {
    context.positions = inputs.position_ids.reshape({inputs.position_ids.count()});
    context.document_starts = inputs.document_starts;
  } else {
    context.positions = counted_.get({context.rows, context.tokens}, device(),
                                     [&] { return counted_positions(context.rows, context.tokens, 0); });
  }
  const bool is_split = inputs.whole.tokens > 0;
  if (is_split) {
    if (!split_) throw std::logic_error("loss: the rows are parts, and nothing says where the rest is");
    context.split = split_.get();
    context.whole_tokens = inputs.whole.tokens;
    context.whole_document_starts = inputs.whole.document_starts;
  }
  context.rope = rope_tables(is_split ? inputs.whole.tokens : context.tokens);
  return context;
}

const ops::RopeTables& Decoder::rope_tables(int64_t positions) {
  if (!rope_.cos.defined() || rope_.cos.size(0) < positions) {
    const ops::RopeTables made = ops::rope_tables(std::max(positions, int64_t{256}), rope_frequencies(config_));
    StreamGraph::outside([&] { rope_ = {on_device(made.cos, device()), on_device(made.sin, device())}; });
  }
  StreamGraph::keep(rope_.cos), StreamGraph::keep(rope_.sin);
  return rope_;
}

}  // namespace trainyard::models
