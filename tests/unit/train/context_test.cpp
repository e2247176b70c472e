// Runs whose rows are split among ranks: those of one rank, with the memory and the messages that are planned.
#include <catch2/catch.hpp>

#include "split_run.h"

namespace trainyard::train {
namespace {

using config::CheckpointingMode;
using config::ContextBalance;
using config::ContextMethod;
using config::Precision;
using config::Strategy;

constexpr BatchShape kBatch{.rows = 2, .tokens = 24};

config::Config with_context(int64_t context, ContextMethod method = ContextMethod::Ring,
                            ContextBalance balance = ContextBalance::HeadTail) {
  config::Config config;
  config.parallel.context = context;
  config.parallel.context_method = method;
  config.parallel.context_balance = balance;
  return config;
}

test::Ran run_on(const config::Config& config, int world) {
  return test::run_small(config, test::odd_model(), world, kBatch);
}

void check_like_one_rank(const config::Config& config, int world, double tolerance = 1e-5) {
  test::check_like_one_rank(config, test::odd_model(), world, kBatch, tolerance);
}

}  // namespace

TEST_CASE("context: every method, with every strategy, is one rank's", "[train]") {
  const ContextMethod method = GENERATE(ContextMethod::Ring, ContextMethod::AllGather);
  const Strategy strategy = GENERATE(Strategy::FullShard, Strategy::ShardGradOp, Strategy::NoShard);
  // On the stand-ins for a device, whose threads take turns, a part has to do.
  if (cuda_devices() > 0 && method == ContextMethod::AllGather && strategy != Strategy::FullShard) return;
  config::Config config = with_context(2, method);
  config.parallel.strategy = strategy;
  config.training.accumulation_steps = 2;
  CAPTURE(static_cast<int>(method), static_cast<int>(strategy));
  check_like_one_rank(config, 4);
}

TEST_CASE("context: copies of the model that are split over a context, and back over a part of it", "[train]") {
  config::Config config = with_context(2);
  config.parallel.strategy = Strategy::HybridShard;
  config.parallel.replicate = 2;
  check_like_one_rank(config, 8);
  config.parallel.replicate = -1;
  config.parallel.shard = -1;
  config.parallel.strategy = Strategy::FullShard;
  config.parallel.reshard_after_forward = "2";
  check_like_one_rank(config, 4);
}

TEST_CASE("context: recomputation and another precision change no more than without", "[train]") {
  // Every method, and every balance with one; trajectory_test has all of them together.
  const auto way = GENERATE(table<ContextMethod, ContextBalance>({{ContextMethod::Ring, ContextBalance::HeadTail},
                                                                  {ContextMethod::AllGather, ContextBalance::None},
                                                                  {ContextMethod::Ulysses, ContextBalance::HeadTail}}));
  config::Config config = with_context(3, std::get<0>(way), std::get<1>(way));
  const test::Ran plain = run_on(config, 3);
  for (const auto mode : {CheckpointingMode::Selective, CheckpointingMode::EveryN, CheckpointingMode::Full}) {
    config.activation_checkpointing = {mode, 2, mode == CheckpointingMode::Full};
    CHECK(run_on(config, 3).losses == plain.losses);
  }
  config.activation_checkpointing = {};
  config.parallel.param_dtype = Precision::BFloat16;
  check_like_one_rank(config, 3, 2e-3);
  config.parallel.param_dtype = Precision::Float16;
  check_like_one_rank(config, 3, 5e-4);
}

TEST_CASE("context: a run repeats bit for bit", "[train][bit_equal]") {
  const config::Config config = with_context(4);
  const test::Ran first = run_on(config, 4), second = run_on(config, 4);
  CHECK(first.losses == second.losses);
  CHECK(first.norms == second.norms);
  CHECK(first.weights == second.weights);
}

TEST_CASE("context: what is sent is what is planned, exactly", "[train]") {
  const ContextMethod method = GENERATE(ContextMethod::Ring, ContextMethod::AllGather, ContextMethod::Ulysses);
  const int64_t context = method == ContextMethod::Ulysses ? 3 : GENERATE(2, 4);
  const auto world = static_cast<int>(2 * context);
  config::Config config = with_context(context, method);
  CAPTURE(static_cast<int>(method), context);
  test::check_sent_as_planned(config, test::odd_model(), world, kBatch);
}

TEST_CASE("context: memory is within 5 % of what is planned, and activations are halved", "[train]") {
  const ContextMethod method = GENERATE(ContextMethod::Ring, ContextMethod::AllGather);
  const BatchShape batch{.rows = 1, .tokens = cuda_devices() > 0 ? 192 : 512};
  const config::Config config = with_context(2, method);
  const MemoryUse most = test::check_memory_as_planned(config, test::odd_model(), 2, batch);
  const test::Ran one = test::run_small(with_context(1), test::odd_model(), 1, batch);
  CHECK(static_cast<double>(most[MemoryKind::Activations]) <=
        0.55 * static_cast<double>(one.most[MemoryKind::Activations]));
}

TEST_CASE("context: a model without such a dimension is refused, and heads that ulysses cannot split", "[train]") {
  CHECK(test::refusal_of(with_context(2), models::preset("t5-small")) ==
        "parallel.context is 2, but a t5 model has no context dimension; use 1");
  CHECK(test::refusal_of(with_context(2, ContextMethod::Ulysses), test::odd_model()) ==
        "parallel.context is 2, but ulysses splits the 3 heads of the model among those ranks; use a divisor of 3, or "
        "ring or all_gather as parallel.context_method");
}

}  // namespace trainyard::train
