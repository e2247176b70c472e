#include "assemble/wrap.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <set>

#include "base/error.h"
#include "base/files.h"
#include "models/model.h"
#include "support/support.h"

namespace trainyard::train {
namespace {

using Names = std::vector<std::string>;

models::ModelConfig shape_of(const nlohmann::json& shape, const std::string& family) {
  return {.family = family,
          .vocab_size = shape.at("vocab_size"),
          .hidden_size = shape.at("hidden_size"),
          .intermediate_size = shape.at("intermediate_size"),
          .layers = shape.at("num_hidden_layers"),
          .heads = shape.at("num_attention_heads"),
          .kv_heads = shape.at("num_key_value_heads"),
          .head_dim = shape.at("head_dim"),
          .tied_head = shape.at("tie_word_embeddings")};
}

/// The parameters of each group, and of what is left, as the engine takes them: innermost first.
std::set<std::set<std::string>> parameters_of(nn::Module& model, const Groups& groups) {
  std::set<std::string> taken;
  std::set<std::set<std::string>> sets;
  const auto take = [&](const std::vector<nn::Module*>& modules) {
    std::set<std::string> own;
    for (const nn::Module* const module : modules)
      for (const autograd::Parameter* const parameter : module->parameters())
        if (taken.insert(parameter->name()).second) own.insert(parameter->name());
    if (!own.empty()) sets.insert(own);
  };
  for (const auto& modules : groups) take(modules);
  take({&model});
  return sets;
}

models::ModelConfig tiny(const std::string& family, bool tied = false) {
  return {.family = family,
          .vocab_size = 40,
          .hidden_size = 12,
          .intermediate_size = 48,
          .layers = 4,
          .heads = 3,
          .kv_heads = 1,
          .head_dim = 6,
          .tied_head = tied};
}

Names labels_of(const Groups& groups) {
  Names labels;
  for (const auto& modules : groups) {
    labels.emplace_back();
    for (const nn::Module* const module : modules) labels.back() += (labels.back().empty() ? "" : " ") + module->name();
  }
  return labels;
}

}  // namespace

TEST_CASE("groups_of: size_based_wrap makes the groups of PyTorch's size_based_auto_wrap_policy", "[train]") {
  const auto golden =
      nlohmann::json::parse(read_file(test::in_repository("tests/unit/train/wrap_groups.json"), 1 << 20));
  for (const auto& record : golden.at("records")) {
    const std::string family = record.at("family");
    const int64_t least = record.at("min_num_params");
    CAPTURE(family, least);
    const auto model = models::build(shape_of(golden.at("shape"), family));
    std::set<std::set<std::string>> expected;
    for (const auto& group : record.at("groups"))
      if (!group.empty()) expected.insert(group.get<std::set<std::string>>());
    const Groups groups =
        groups_of(*model, model->blocks(), {.policy = Wrap::Policy::Size, .classes = {}, .min_num_params = least});
    CHECK(parameters_of(*model, groups) == expected);
  }
}

TEST_CASE("groups_of: what the head shares with the embedding is in the group of the whole model", "[train]") {
  const auto model = models::build(tiny("qwen3", true));
  const Groups groups =
      groups_of(*model, model->blocks(), {.policy = Wrap::Policy::Size, .classes = {}, .min_num_params = 100});
  for (const auto& modules : groups) CHECK_FALSE(modules.front()->holds_shared());
  CHECK_THROWS_WITH(groups_of(*model, model->blocks(), {.classes = {"Embedding"}}),
                    Catch::Contains("names Embedding, which is no class of this model that can be wrapped") &&
                        Catch::EndsWith("use Linear, Qwen3DecoderLayer"));
}

TEST_CASE("groups_of: transformer_based_wrap takes classes as transformers names them, no_wrap takes none", "[train]") {
  const auto model = models::build(tiny("llama"));
  const auto groups = [&](const Wrap& wrap) { return labels_of(groups_of(*model, model->blocks(), wrap)); };
  const Names blocks{"model.layers.0", "model.layers.1", "model.layers.2", "model.layers.3"};
  CHECK(groups({}) == blocks);
  CHECK(groups({.classes = {"LlamaDecoderLayer"}}) == blocks);
  CHECK(groups({.classes = {"Embedding", "LlamaDecoderLayer"}}) ==
        Names{"model.embed_tokens", "model.layers.0", "model.layers.1", "model.layers.2", "model.layers.3"});
  CHECK(groups({.policy = Wrap::Policy::None, .classes = {}}).empty());
  CHECK_THROWS_WITH(
      groups({.classes = {"BertLayer", "LlamaDecoderLayer"}}),
      "parallel.transformer_layer_cls_to_wrap names BertLayer, which is no class of this model that can be "
      "wrapped; use Embedding, Linear, LlamaDecoderLayer");
}

TEST_CASE("groups_of: t5 has the blocks of both stacks, and what they share is in the group of the whole model",
          "[train]") {
  models::ModelConfig config = tiny("t5");
  config.layers = 2, config.t5.decoder_layers = 1;
  const auto model = models::build(config);
  const Names blocks{"encoder.block.0", "encoder.block.1", "decoder.block.0"};
  CHECK(labels_of(groups_of(*model, model->blocks(), {})) == blocks);
  CHECK(labels_of(groups_of(*model, model->blocks(), {.classes = {"T5Block"}})) == blocks);
  CHECK_THROWS_WITH(groups_of(*model, model->blocks(), {.classes = {"T5Layer"}}),
                    Catch::EndsWith("use Embedding, Linear, T5Block"));
  for (const auto& modules :
       groups_of(*model, model->blocks(), {.policy = Wrap::Policy::Size, .classes = {}, .min_num_params = 100}))
    CHECK(modules.front()->name() != "shared");
}

TEST_CASE("in_buckets: neighbours are put together from the last on until a bucket is full", "[train]") {
  const auto model = models::build(tiny("llama"));
  const Groups blocks = groups_of(*model, model->blocks(), {});
  int64_t block_bytes = 0;
  for (const autograd::Parameter* const parameter : model->blocks().front()->parameters())
    block_bytes += parameter->count() * 4;
  const auto always = [](const nn::Module&, const nn::Module&) { return true; };
  const std::string all = "model.layers.0 model.layers.1 model.layers.2 model.layers.3";
  CHECK(labels_of(in_buckets(blocks, 1, always)).size() == 4);
  CHECK(labels_of(in_buckets(blocks, 1 << 20, always)) == Names{all});
  CHECK(labels_of(in_buckets(blocks, block_bytes * 2, always)) ==
        Names{"model.layers.0 model.layers.1", "model.layers.2 model.layers.3"});
  CHECK(labels_of(in_buckets(blocks, block_bytes * 2 + 1, always)) ==
        Names{"model.layers.0", "model.layers.1 model.layers.2 model.layers.3"});
  CHECK(in_buckets({}, 1, always).empty());
  const auto but_the_first = [&](const nn::Module& a, const nn::Module& b) {
    return &a != blocks[0].front() && &b != blocks[0].front();
  };
  CHECK(labels_of(in_buckets(blocks, 1 << 20, but_the_first)) ==
        Names{"model.layers.0", "model.layers.1 model.layers.2 model.layers.3"});
}

}  // namespace trainyard::train
