// Runs whose layers are split among ranks: those of one rank, with the memory and the messages that are planned.
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <algorithm>

#include "covering.h"
#include "split_run.h"

namespace trainyard::train {
namespace {

using config::CheckpointingMode;
using config::Precision;
using config::Strategy;

constexpr BatchShape kOddBatch{.rows = 2, .tokens = 23};  // 46 tokens, which 4 ranks do not divide

/// Eight heads on two KV heads; the rest divides by nothing.
models::ModelConfig model_of(const std::string& family = "qwen3") {
  models::ModelConfig model = test::odd_model();
  model.family = family;
  model.heads = 8, model.kv_heads = 2, model.head_dim = 6, model.layers = 3;
  return model;
}

config::Config with_tensor(int64_t tensor, bool sequence_parallel = true, bool loss_parallel = true) {
  config::Config config;
  config.parallel.tensor = tensor;
  config.parallel.sequence_parallel = sequence_parallel;
  config.parallel.loss_parallel = loss_parallel;
  return config;
}

/// A world as its dimensions; in that order they are multiplied.
struct Layout {
  int replicate = 1, shard = 1, context = 1, tensor = 1;
  [[nodiscard]] int world() const { return replicate * shard * context * tensor; }
};

/// Every way to make 1, 2, 4 and 8 ranks of four dimensions.
std::vector<Layout> layouts() {
  std::vector<Layout> all;
  for (const int world : {1, 2, 4, 8})
    for (int replicate = 1; replicate <= world; replicate *= 2)
      for (int shard = 1; replicate * shard <= world; shard *= 2)
        for (int context = 1; replicate * shard * context <= world; context *= 2)
          all.push_back({replicate, shard, context, world / (replicate * shard * context)});
  return all;
}

const std::vector<Strategy> kStrategies{Strategy::FullShard, Strategy::ShardGradOp, Strategy::NoShard};
const std::vector<config::ActivationCheckpointing> kCheckpointing{{CheckpointingMode::None, 2, false},
                                                                  {CheckpointingMode::Selective, 2, false},
                                                                  {CheckpointingMode::EveryN, 2, true},
                                                                  {CheckpointingMode::Full, 2, false}};
const std::vector<std::string> kFamilies{"qwen3", "llama", "qwen2"};
const std::vector<config::Config (*)(int64_t tensor)> kWays{
    [](int64_t tensor) { return with_tensor(tensor); }, [](int64_t tensor) { return with_tensor(tensor, false); },
    [](int64_t tensor) { return with_tensor(tensor, true, false); },
    [](int64_t tensor) {
      config::Config config = with_tensor(tensor);
      config.parallel.async_tensor = true;
      return config;
    }};

}  // namespace

namespace {

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TRAINYARD_IS_SANITIZED
#endif
#endif
#ifdef TRAINYARD_IS_SANITIZED
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif

const std::vector<size_t> kChoices{layouts().size(), kStrategies.size(), kCheckpointing.size(), 2, kFamilies.size(),
                                   kWays.size()};

/// A run of the whole product, by its index in each of kChoices.
struct Chosen {
  config::Config config;
  models::ModelConfig model;
  int world;
};

Chosen chosen(const std::vector<size_t>& choice) {
  const Layout layout = layouts()[choice[0]];
  config::Config config = kWays[choice[5]](layout.tensor);
  config.parallel.context = layout.context;
  config.parallel.strategy = kStrategies[choice[1]];
  const bool is_whole = config.parallel.strategy == Strategy::NoShard;
  config.parallel.replicate = is_whole ? layout.replicate * layout.shard : layout.replicate;
  if (!is_whole) config.parallel.shard = layout.shard;
  config.activation_checkpointing = kCheckpointing[choice[2]];
  config.training.accumulation_steps = 1 + static_cast<int64_t>(choice[3]);
  return {config, model_of(kFamilies[choice[4]]), layout.world()};
}

}  // namespace

TEST_CASE("tensor: in every layout, strategy, checkpointing mode, accumulation and family, a run is one rank's",
          "[train]") {
  // On the stand-ins for a device, whose threads take turns, a few have to do, and with sanitizers a part.
  const size_t every = cuda_devices() > 0 ? 60 : kIsSanitized ? 5 : 1;
  const auto choices = test::covering(kChoices);
  for (size_t i = 0; i < choices.size(); i += every) {
    const auto& choice = choices[i];
    const Chosen run = chosen(choice);
    CAPTURE(choice);
    test::check_like_one_rank(run.config, run.model, run.world, kOddBatch);
  }
}

// bench/layouts: minutes.
TEST_CASE("product: every layout with every choice is one rank's", "[.product]") {
  size_t product = 1;
  for (const size_t size : kChoices) product *= size;
  test::Deviation most;
  for (size_t number = 0; number < product; ++number) {
    std::vector<size_t> choice;
    for (size_t kind = 0, rest = number; kind < kChoices.size(); rest /= kChoices[kind++])
      choice.push_back(rest % kChoices[kind]);
    const Chosen run = chosen(choice);
    const test::Deviation of_run = test::deviation_from_one_rank(run.config, run.model, run.world, kOddBatch);
    most = {std::max(most.loss, of_run.loss), std::max(most.norm, of_run.norm)};
  }
  fmt::print("{} runs on 1 to 8 ranks; beside one rank the loss differs by {:.1e} at most, the gradient norm by {:.1e}\n",
             product, most.loss, most.norm);
  CHECK(most.loss <= 1e-5);
  CHECK(most.norm <= 2e-4);
}

TEST_CASE("tensor: what a strategy has beside that, is one rank's too", "[train]") {
  config::Config config = with_tensor(2);
  SECTION("parameters that come back from a part of the shards") {
    config.parallel.reshard_after_forward = "2";
    test::check_like_one_rank(config, model_of(), 8, kOddBatch);
  }
  SECTION("gradients that are reduced in every micro-batch, also where nothing is sharded") {
    config.training.accumulation_steps = 3;
    config.training.sync_every_micro_batch = true;
    config.parallel.strategy = GENERATE(Strategy::FullShard, Strategy::NoShard);
    test::check_like_one_rank(config, model_of(), 2, kOddBatch);
    if (cuda_devices() == 0) test::check_like_one_rank(config, model_of(), 4, kOddBatch);
  }
  SECTION("groups of another kind") {
    config.parallel.wrap = GENERATE(config::Wrap::None, config::Wrap::SizeBased);
    config.parallel.min_num_params = 1000;
    test::check_like_one_rank(config, model_of(), 4, kOddBatch);
  }
  SECTION("frozen parameters, clipped gradients and a head that is the embedding") {
    config.training.freeze = "model.layers.1.*,*norm*";
    config.training.clip_grad_norm = 0.1;
    test::check_like_one_rank(config, model_of(), 4, kOddBatch);
  }
  SECTION("a window over the keys") {
    models::ModelConfig model = model_of("mistral");
    model.sliding_window = 5;
    test::check_like_one_rank(config, model, 4, kOddBatch);
  }
  SECTION("attention by heads over a context") {
    config.parallel.context = 2;
    config.parallel.context_method = config::ContextMethod::Ulysses;
    test::check_like_one_rank(config, model_of(), 4, kOddBatch);
  }
}

TEST_CASE("tensor: another precision changes no more than without", "[train]") {
  config::Config config = with_tensor(4, GENERATE(true, false), GENERATE(true, false));
  config.parallel.param_dtype = Precision::BFloat16;
  test::check_like_one_rank(config, model_of(), 4, kOddBatch, 2e-3);
  config.parallel.param_dtype = Precision::Float16;
  test::check_like_one_rank(config, model_of(), 4, kOddBatch, 5e-4);
}

TEST_CASE("tensor: layers in 8 bits learn as on one rank, each rank with the scales of its part", "[train]") {
  models::ModelConfig model = model_of("llama");
  model.hidden_size = 64, model.intermediate_size = 128, model.head_dim = 16;  // whose parts have sizes of 16
  const size_t way = GENERATE(size_t{0}, size_t{1}, size_t{3});
  if (cuda_devices() > 0 && way != 0) return;  // on the stand-ins one has to do
  config::Config config = kWays[way](2);
  config.parallel.param_dtype = Precision::BFloat16;
  config.float8.recipe = GENERATE(config::Float8Recipe::Tensorwise, config::Float8Recipe::Rowwise);
  config.float8.all_gather = config.float8.recipe == config::Float8Recipe::Tensorwise && GENERATE(false, true);
  const test::Deviation of_run = test::deviation_from_one_rank(config, model, 4, kOddBatch);
  CHECK(of_run.loss < 5e-3);
  CHECK(of_run.norm < 5e-2);
}

TEST_CASE("tensor: recomputation changes no bit, and a run repeats", "[train][bit_equal]") {
  config::Config config = kWays[GENERATE(size_t{0}, size_t{1}, size_t{3})](4);
  const test::Ran plain = test::run_small(config, model_of(), 4, kOddBatch);
  for (const auto& how : kCheckpointing) {
    config.activation_checkpointing = how;
    const test::Ran again = test::run_small(config, model_of(), 4, kOddBatch);
    CHECK(again.losses == plain.losses);
    CHECK(again.weights == plain.weights);
  }
}

TEST_CASE("tensor: what is sent is what is planned, exactly", "[train]") {
  config::Config config = kWays[GENERATE(size_t{0}, size_t{1}, size_t{2}, size_t{3})](1);
  config.activation_checkpointing.mode = GENERATE(CheckpointingMode::None, CheckpointingMode::Full);
  for (const Layout layout : {Layout{.tensor = 2}, Layout{.tensor = 8}, Layout{.shard = 2, .tensor = 4},
                              Layout{.replicate = 2, .shard = 1, .context = 2, .tensor = 2}}) {
    config.parallel.tensor = layout.tensor;
    config.parallel.context = layout.context;
    config.parallel.replicate = layout.replicate;
    CAPTURE(layout.replicate, layout.shard, layout.context, layout.tensor, config.parallel.sequence_parallel,
            config.parallel.loss_parallel, config.parallel.async_tensor);
    test::check_sent_as_planned(config, model_of(), layout.world(), kOddBatch);
  }
}

TEST_CASE("tensor: memory is within 5 % of what is planned, and a rank has a part of it", "[train]") {
  const BatchShape batch{.rows = 2, .tokens = cuda_devices() > 0 ? 96 : 256};
  const config::Config config = with_tensor(4, GENERATE(true, false));
  const MemoryUse most = test::check_memory_as_planned(config, model_of(), 4, batch);
  const test::Ran one = test::run_small(with_tensor(1), model_of(), 1, batch);
  for (const MemoryKind kind : {MemoryKind::Parameters, MemoryKind::Gradients, MemoryKind::Optimizer})
    CHECK(static_cast<double>(most[kind]) <= 0.3 * static_cast<double>(one.most[kind]));
  // What is gathered for a product is whole: with sequence parallelism the rest is a part.
  if (config.parallel.sequence_parallel)
    CHECK(static_cast<double>(most[MemoryKind::Activations]) <=
          0.65 * static_cast<double>(one.most[MemoryKind::Activations]));
}

TEST_CASE("tensor: a model without such a dimension is refused, and heads that do not divide", "[train]") {
  CHECK(test::refusal_of(with_tensor(2), test::odd_model()) ==
        "parallel.tensor is 2, but the model has 3 heads, which are split among those ranks; use a divisor of 3");
  config::Config both = with_tensor(4);
  both.parallel.context = 4;
  both.parallel.context_method = config::ContextMethod::Ulysses;
  CHECK(test::refusal_of(both, model_of(), 16) ==
        "parallel.context is 4, but ulysses splits the 2 heads that a rank of parallel.tensor has among those ranks; "
        "use a divisor of 2, or ring or all_gather as parallel.context_method");
  CHECK(test::refusal_of(both, model_of(), 8) ==
        "parallel.context is 4 and parallel.tensor 4, but 8 processes were started; use two numbers whose product "
        "divides 8");
  CHECK(test::refusal_of(with_tensor(3), model_of(), 4) ==
        "parallel.tensor is 3, but 4 processes were started; use 1, 2, 4");
}

}  // namespace trainyard::train
