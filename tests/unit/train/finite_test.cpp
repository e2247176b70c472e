#include "train/finite.h"

#include <catch2/catch.hpp>

#include <limits>

#include "assemble/sharded_model.h"
#include "base/error.h"
#include "support/ranks.h"

namespace trainyard::train {
namespace {

using Spoil = std::function<void(shard::Engine&, int rank)>;
using Throw = std::function<void(comm::Communicator&, const shard::Engine&)>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void of_a_step(comm::Communicator& world, const shard::Engine& engine) {
  throw_not_finite(world, engine, {12, kNan, 1, engine.gradient_squares().of_each}, "advice");
}

/// What every rank says when `spoil` has put something bad into one rank's shards.
std::vector<std::string> said(const Spoil& spoil, const Throw& throw_it = of_a_step) {
  return test::run_ranks(3, [&](comm::Communicator& world) -> std::string {
    ShardedModel sharded = shard_model({.family = "llama",
                                        .vocab_size = 10,
                                        .hidden_size = 6,
                                        .intermediate_size = 6,
                                        .layers = 1,
                                        .heads = 1,
                                        .kv_heads = 1,
                                        .head_dim = 6},
                                       world, {.mesh = {1, 3}});
    fill_random(*sharded.engine, 1);
    nn::Tape tape;
    const Tensor ids = Tensor::zeros({1, 4}, DType::Int32);
    static_cast<void>(sharded.model->loss({ids, ids}, {1, &tape}));
    tape.backward();
    sharded.engine->finish_backward();
    spoil(*sharded.engine, world.rank());
    try {
      throw_it(world, *sharded.engine);
    } catch (const NotFiniteError& error) {
      return error.what();
    }
    return "nothing";
  });
}

}  // namespace

TEST_CASE("throw_not_finite: all ranks name the step and the first bad tensor of any rank", "[train]") {
  const auto gradient = said([](shard::Engine& engine, int rank) {
    if (rank != 1) return;
    Tensor bad = engine.shards()[3].gradient;
    bad.values<float>()[0] = std::numeric_limits<float>::infinity();
  });
  for (const std::string& text : gradient) {
    CHECK_THAT(text,
               Catch::Contains("step 12: loss nan") &&
                   Catch::Contains("the first bad tensor is the gradient of model.layers.0.self_attn.v_proj.weight"));
  }
  const auto parameter = said([](shard::Engine& engine, int rank) {
    Tensor value = engine.shards()[rank == 2 ? 1 : 4].value;
    if (rank > 0) value.values<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  });
  for (const std::string& text : parameter)
    CHECK_THAT(text, Catch::Contains("the first bad tensor is model.layers.0.self_attn.q_proj.weight"));
  for (const std::string& text : said([](shard::Engine&, int) {}))
    CHECK_THAT(text, Catch::Contains("it came about in the loss"));
}

TEST_CASE("throw_not_finite: of a loss without a step, gradients are not looked at", "[train]") {
  const Throw of_a_loss = [](comm::Communicator& world, const shard::Engine& engine) {
    throw_not_finite(world, engine, "folder", -kNan);
  };
  const auto parameter = said(
      [](shard::Engine& engine, int rank) {
        Tensor value = engine.shards()[1].value;
        if (rank == 2) value.values<float>()[0] = std::numeric_limits<float>::infinity();
      },
      of_a_loss);
  CHECK(parameter == std::vector<std::string>(
                         3, "folder: loss nan: the first bad tensor is model.layers.0.self_attn.q_proj.weight"));
  const auto gradient = said(
      [](shard::Engine& engine, int) {
        Tensor bad = engine.shards()[3].gradient;
        bad.values<float>()[0] = std::numeric_limits<float>::infinity();
      },
      of_a_loss);
  CHECK(gradient ==
        std::vector<std::string>(3, "folder: loss nan: every parameter is finite, so it came about in the loss"));
}

}  // namespace trainyard::train
