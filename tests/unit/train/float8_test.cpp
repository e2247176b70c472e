// Training with linear layers in 8 bits: which they are, what a run makes of them, and what is sent.
#include "assemble/float8.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <mutex>

#include "base/error.h"
#include "shard/traffic.h"
#include "small_run.h"
#include "support/support.h"

namespace trainyard::train {
namespace {

using config::CheckpointingMode;
using config::Float8Recipe;
using config::Strategy;
using test::run_small;

constexpr BatchShape kFloat8Rows{.rows = 2, .tokens = 9};  // 18 tokens: no multiple of 16

models::ModelConfig even_model() {
  return {.family = "llama",
          .vocab_size = 50,
          .hidden_size = 32,
          .intermediate_size = 48,
          .layers = 2,
          .heads = 2,
          .kv_heads = 1,
          .head_dim = 16,
          .max_positions = 64,
          .tied_head = false};
}

config::Config in_8_bits(Float8Recipe recipe) {
  config::Config config;
  config.parallel.param_dtype = config::Precision::BFloat16;
  config.optimizer.lr = 3e-3;
  config.float8.recipe = recipe;
  return config;
}

struct Float8Variant {
  std::string name;
  int world;
  void (*change)(config::Config&);
};

// Ranks that leave the last short or empty, and every way in which a group gathers.
const Float8Variant kFloat8Variants[] = {
    {"1 rank", 1, [](auto&) {}},
    {"2 ranks", 2, [](auto&) {}},
    {"4 ranks", 4, [](auto&) {}},
    {"5 ranks", 5, [](auto&) {}},
    {"kept gathered", 2, [](auto& c) { c.parallel.strategy = Strategy::ShardGradOp; }},
    {"two copies", 4, [](auto& c) { c.parallel.shard = 2; }},
    {"gathered again from neighbours", 4, [](auto& c) { c.parallel.reshard_after_forward = "2"; }},
    {"accumulated", 2, [](auto& c) { c.training.accumulation_steps = 2; }},
    {"recomputed", 2, [](auto& c) { c.activation_checkpointing.mode = CheckpointingMode::Full; }},
    {"activations offloaded", 2,
     [](auto& c) {
       c.activation_checkpointing = {CheckpointingMode::Selective, 1, true};
     }},
    {"offloaded", 2, [](auto& c) { c.parallel.offload = true; }},
    {"early", 2, [](auto& c) { c.parallel.unshard_early = true; }},
    {"float32", 2, [](auto& c) { c.parallel.param_dtype = config::Precision::Float32; }},
    {"float16", 2, [](auto& c) { c.parallel.param_dtype = config::Precision::Float16; }},
};

}  // namespace

TEST_CASE("float8: a run's losses stay within 1 % of those in bfloat16, and it learns", "[train]") {
  const auto recipe = GENERATE(Float8Recipe::Tensorwise, Float8Recipe::Rowwise, Float8Recipe::RowwiseWithGwHp);
  constexpr int64_t kSteps = 30;
  const auto losses = [](Float8Recipe of) {
    return run_small(in_8_bits(of), even_model(), 2, kFloat8Rows, kSteps).losses;
  };
  const std::vector<double> seen = losses(recipe), expected = losses(Float8Recipe::None);
  REQUIRE(seen.size() == kSteps);
  CHECK(seen != expected);
  for (size_t i = 0; i < seen.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(seen[i] / expected[i] - 1) < 0.01);
  }
  CHECK(seen.back() < 0.8 * seen.front());
}

TEST_CASE("float8: gathers in 8 bits change no bit of a run", "[train]") {
  const Float8Variant variant = GENERATE(from_range(std::begin(kFloat8Variants), std::end(kFloat8Variants)));
  CAPTURE(variant.name);
  config::Config config = in_8_bits(Float8Recipe::Tensorwise);
  variant.change(config);
  const test::Ran without = run_small(config, even_model(), variant.world, kFloat8Rows, 3);
  config.float8.all_gather = true;
  const test::Ran with = run_small(config, even_model(), variant.world, kFloat8Rows, 3);
  CHECK(with.losses == without.losses);
  CHECK(with.norms == without.norms);
  CHECK((with.weights == without.weights));
}

TEST_CASE("float8: at a number of ranks a run is the same bits however the model is split over them", "[train][bit_equal]") {
  config::Config config = in_8_bits(Float8Recipe::Tensorwise);
  config.float8.all_gather = true;
  const std::vector<double> split = run_small(config, even_model(), 4, kFloat8Rows, 3).losses;
  config.parallel.shard = 2;
  CHECK(run_small(config, even_model(), 4, kFloat8Rows, 3).losses == split);
  config.parallel.shard = -1;
  config.parallel.strategy = Strategy::NoShard;
  CHECK(run_small(config, even_model(), 4, kFloat8Rows, 3).losses == split);
}

namespace {

/// Of one step at two ranks: by the formula, and as the communicator did it.
struct Float8Sent {
  shard::Traffic formula;
  shard::Messages gathers, scales;
};

Float8Sent sent_in_a_step(comm::Communicator& comm, const config::Config& config) {
  Float8Sent sent;
  std::mutex mutex;
  comm.on_collective([&](const comm::CollectiveRecord& record) {
    const std::lock_guard lock(mutex);
    const bool is_of_group = record.label.starts_with("model") || record.label == "root";
    if (!is_of_group && record.label != "float8 scales") return;
    if (is_of_group && record.name != "all_gather") return;
    shard::Messages& messages = is_of_group ? sent.gathers : sent.scales;
    ++messages.count;
    messages.bytes += record.bytes;
  });
  test::run_rank(comm, config, even_model(), kFloat8Rows, 1, {});
  comm.barrier();
  comm.on_collective(nullptr);
  const RunSpec spec = resolve(config::Loaded{config, {}, {}}, Ranks{comm.world(), 0}, {});
  const ShardedModel sharded = shard_model(even_model(), comm, spec.sharding);
  sent.formula = shard::traffic_of(*sharded.engine, 1);
  return sent;
}

}  // namespace

TEST_CASE("float8: gathers in 8 bits send a byte an element, and one maximum a step for all scales", "[train]") {
  config::Config config = in_8_bits(Float8Recipe::Tensorwise);
  const auto sent = [&] {
    return test::run_ranks(2, [&](comm::Communicator& comm) { return sent_in_a_step(comm, config); }).front();
  };
  const Float8Sent without = sent();
  config.float8.all_gather = true;
  const Float8Sent with = sent();
  for (const Float8Sent& each : {without, with}) {
    CHECK(each.formula.gathers == each.gathers);
    CHECK(each.formula.scales == each.scales);
  }
  // Of two blocks, gathered for forward and for backward: q, k, v, o, gate, up and down, in 8 bits instead of 16.
  constexpr uint64_t kWeights = 32 * 32 + 2 * 16 * 32 + 32 * 32 + 3 * 48 * 32;
  CHECK(without.gathers.bytes - with.gathers.bytes == 2 * 2 * kWeights);
  CHECK(with.gathers.count == without.gathers.count + 2 * 2);
  CHECK(without.scales.count == 0);
  CHECK(with.scales == shard::Messages{1, 2 * 7 * sizeof(float)});
}

TEST_CASE("float8: layers of the blocks with even sizes are converted, and a run says which are not", "[train]") {
  models::ModelConfig config = even_model();
  config.intermediate_size = 40;  // no multiple of 16: gate, up and down stay as they are
  const auto model = models::build(config);
  const Float8Model made = convert_to_float8(*model, {.filter_fqns = {"layers.0.", "lm_head"}});
  CHECK(made.converted == 4);
  CHECK(described(made) ==
        "4 of 15 linear layers; not model.layers.0.self_attn.q_proj, model.layers.0.self_attn.k_proj, "
        "model.layers.0.self_attn.v_proj, model.layers.0.self_attn.o_proj, …, model.layers.1.mlp.gate_proj, "
        "model.layers.1.mlp.up_proj, model.layers.1.mlp.down_proj, lm_head");
  for (const autograd::Parameter* const parameter : model->parameters()) {
    const bool is_converted =
        parameter->name().starts_with("model.layers.1.self_attn") && parameter->name().ends_with("_proj.weight");
    CHECK(parameter->float8().has_value() == is_converted);
  }
}

TEST_CASE("float8: a filter that names nothing and a model with nothing to convert are refused", "[train]") {
  const auto model = models::build(even_model());
  CHECK_THROWS_WITH(convert_to_float8(*model, {.filter_fqns = {"attention.wq"}}),
                    "float8.filter_fqns: 'attention.wq' is in the name of no linear layer of this model; its first is "
                    "model.layers.0.self_attn.q_proj");
  CHECK_THROWS_WITH(
      convert_to_float8(*model, {.filter_fqns = {"_proj"}}),
      Catch::StartsWith("float8.recipe: none of this model's 15 linear layers can be computed in 8 bits"));
}

TEST_CASE("float8: a device without units for 8 bits is refused with what it is", "[train]") {
  const config::Loaded asked = config::load({"--float8.recipe=rowwise"}, {});
  CHECK_THROWS_WITH(
      check_float8(asked, {.name = "NVIDIA A100", .major = 8, .minor = 0}),
      "--float8.recipe is rowwise, but NVIDIA A100 has compute capability 8.0, and products in 8 bits need "
      "8.9; leave it out");
  CHECK_NOTHROW(check_float8(asked, {.name = "NVIDIA L4", .major = 8, .minor = 9}));
  CHECK_NOTHROW(check_float8(asked, {.name = "NVIDIA H100", .major = 9, .minor = 0}));
  CHECK_NOTHROW(check_float8(config::load({}, {}), {.name = "NVIDIA A100", .major = 8, .minor = 0}));
}

}  // namespace trainyard::train
