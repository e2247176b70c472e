#include "plan/simulation.h"

#include <catch2/catch.hpp>

#include <ctime>

#include "metrics/trace.h"
#include "ops/cuda/matmul_scratch.h"
#include "small_run.h"

namespace trainyard::train {
namespace {

using config::CheckpointingMode;
using config::Strategy;

Hardware here() {
  Hardware hardware = accelerator("h100");  // rates do not matter here
  hardware.is_cpu = cuda_devices() == 0;
  return hardware;
}

/// Bytes that a device's library may ask for, and are planned.
const double kUnknown = cuda_devices() == 0 ? 0 : static_cast<double>(ops::cuda::kMostProductWorkspace);

config::Config configured(Strategy strategy, CheckpointingMode mode) {
  config::Config config;
  config.parallel.strategy = strategy;
  config.activation_checkpointing.mode = mode;
  config.activation_checkpointing.n = 2;
  return config;
}

Simulation simulate_small(const config::Config& config, int world, BatchShape batch) {
  return simulate({config, {}, {}}, test::odd_model(), {world, world}, here(), batch);
}

constexpr BatchShape kBatch{.rows = 3, .tokens = 33};

void check_predicted(const config::Config& config, int world) {
  const test::Ran ran = test::run_small(config, test::odd_model(), world, kBatch);
  const Simulation predicted = simulate_small(config, world, kBatch);
  const auto measured = static_cast<double>(ran.at_peak.total());
  CHECK(static_cast<double>(predicted.at_peak.total()) == Approx(measured).epsilon(0.05).margin(kUnknown));
  for (const MemoryKind kind : {MemoryKind::Parameters, MemoryKind::Gradients, MemoryKind::Optimizer,
                                MemoryKind::Gathered, MemoryKind::Activations}) {
    INFO(name_of(kind));
    CHECK(static_cast<double>(predicted.most[kind]) ==
          Approx(static_cast<double>(ran.most[kind])).epsilon(0.05).margin(1024 + kUnknown));
  }
}

}  // namespace

TEST_CASE("simulation: memory is within 5 % of what a run holds, in all and of each kind, any strategy and mode") {
  const int world = GENERATE(1, 2, 4);
  const Strategy strategy = GENERATE(Strategy::FullShard, Strategy::ShardGradOp, Strategy::NoShard);
  const CheckpointingMode mode = GENERATE(CheckpointingMode::None, CheckpointingMode::Selective,
                                          CheckpointingMode::EveryN, CheckpointingMode::Full);
  CAPTURE(world, static_cast<int>(strategy), static_cast<int>(mode));
  check_predicted(configured(strategy, mode), world);
}

TEST_CASE("simulation: leaves no span in the trace of the run that it precedes") {
  metrics::Trace trace(0);
  const metrics::AttachTrace attach(&trace, "compute");
  simulate_small(configured(Strategy::FullShard, CheckpointingMode::Full), 2, kBatch);
  CHECK(trace.spans().empty());
  { const metrics::TraceSpan of_the_run("a step", "op"); }
  CHECK(trace.spans().size() == 1);
}

TEST_CASE("simulation: memory is within 5 % with bf16, accumulation and offloaded activations, too") {
  const int world = GENERATE(1, 2);
  config::Config config = configured(Strategy::FullShard, CheckpointingMode::Selective);
  config.training.accumulation_steps = 2;
  config.training.sync_every_micro_batch = GENERATE(false, true);
  config.activation_checkpointing.offload = true;
  config.parallel.param_dtype = GENERATE(config::Precision::Float32, config::Precision::BFloat16);
  config.parallel.precision = GENERATE("", "model.layers.[02]=bf16 output_dtype:fp32, model.layers.3=fp32, root=fp16");
  CAPTURE(world, config.training.sync_every_micro_batch, static_cast<int>(config.parallel.param_dtype),
          config.parallel.precision);
  check_predicted(config, world);
}

TEST_CASE(
    "activation checkpointing: losses, norms and weights have the same bits in every mode, at any world, accumulated", "[bit_equal]") {
  const int world = GENERATE(1, 2, 3);
  const Strategy strategy = GENERATE(Strategy::FullShard, Strategy::ShardGradOp, Strategy::NoShard);
  CAPTURE(world, static_cast<int>(strategy));
  config::Config plain = configured(strategy, CheckpointingMode::None);
  plain.training.accumulation_steps = 2;
  if (world == 2) plain.parallel.precision = "model.layers.[024]=bf16, model.layers.1=bf16 output_dtype:fp16";
  const test::Ran expected = test::run_small(plain, test::odd_model(), world, {2, 9});
  const std::vector<config::ActivationCheckpointing> others{
      {CheckpointingMode::Selective, 1, false}, {CheckpointingMode::EveryN, 2, false},
      {CheckpointingMode::Full, 1, false},      {CheckpointingMode::None, 1, true},
      {CheckpointingMode::Selective, 1, true},  {CheckpointingMode::Full, 1, true}};
  for (const auto& other : others) {
    config::Config config = plain;
    config.activation_checkpointing = other;
    const test::Ran ran = test::run_small(config, test::odd_model(), world, {2, 9});
    CHECK(ran.losses == expected.losses);
    CHECK(ran.norms == expected.norms);
    CHECK(ran.weights == expected.weights);
  }
}

TEST_CASE("activation checkpointing: the peak of activations is none > selective > full, every n-th between") {
  const auto peak = [](CheckpointingMode mode) {
    return test::run_small(configured(Strategy::FullShard, mode), test::odd_model(), 2, {4, 64})
        .most[MemoryKind::Activations];
  };
  const size_t none = peak(CheckpointingMode::None), selective = peak(CheckpointingMode::Selective),
               every_2 = peak(CheckpointingMode::EveryN), full = peak(CheckpointingMode::Full);
  CHECK(none > selective);
  CHECK(selective > full);
  CHECK(none > every_2);
  CHECK(every_2 > full);
}

TEST_CASE(
    "simulation: 28 blocks and a root are 57 gathers and 29 reduce-scatters a step, and replicas all-reduce buckets") {
  const models::ModelConfig model = models::preset("qwen3-0.6b");
  const Simulation sharded = simulate({}, model, {8, 8}, accelerator("h100"), {1, 512});
  CHECK(sharded.parameters == 596'049'920);
  CHECK(sharded.groups.size() == 29);
  CHECK(sharded.traffic.at("all_gather").messages == 57);
  CHECK(sharded.traffic.at("reduce_scatter").messages == 29);
  CHECK(sharded.traffic.at("reduce_scatter").bytes == Approx(4.0 * 596'049'920).epsilon(1e-3));
  config::Config config;
  config.parallel.strategy = Strategy::NoShard;
  const Simulation copied = simulate({config, {}, {}}, model, {8, 8}, accelerator("h100"), {1, 512});
  CHECK(copied.traffic.at("all_reduce").bytes == Approx(4.0 * 596'049'920));
  CHECK(copied.traffic.at("all_reduce").messages > 4 * 596'049'920LL / (25 << 20));  // in buckets
  CHECK_FALSE(copied.traffic.contains("all_gather"));
}

TEST_CASE("simulation: 405 billion parameters on 512 ranks take seconds and no memory") {
  const std::clock_t start = std::clock();
  const size_t before = resident_bytes();
  config::Config config;
  config.parallel.param_dtype = config::Precision::BFloat16;
  config.activation_checkpointing.mode = CheckpointingMode::Full;
  const Simulation seen =
      simulate({config, {}, {}}, models::preset("llama3.1-405b"), {512, 8}, accelerator("h100"), {1, 8192});
  CHECK(seen.parameters == Approx(405.85e9).epsilon(1e-3));
  // 16 bytes a parameter of state, over the ranks.
  const MemoryUse& most = seen.most;
  CHECK(static_cast<double>(most[MemoryKind::Parameters] + most[MemoryKind::Gradients] + most[MemoryKind::Optimizer]) ==
        Approx(16 * 405.85e9 / 512).epsilon(0.01));
  CHECK(seen.mfu() > 0.05);
  CHECK(seen.mfu() < 0.8);
  CHECK(std::clock() - start < 60 * CLOCKS_PER_SEC);  // of the processor's time, whatever else runs
  CHECK(peak_resident_bytes() < before + (size_t{512} << 20));
}

TEST_CASE("simulation: many micro-batches are what a few say of each, and as many as there are are all carried out") {
  config::Config config = configured(Strategy::FullShard, CheckpointingMode::None);
  config.training.accumulation_steps = 5;
  config.training.sync_every_micro_batch = GENERATE(false, true);
  const test::Ran ran = test::run_small(config, test::odd_model(), 2, kBatch);
  const Simulation five = simulate_small(config, 2, kBatch);
  CHECK(static_cast<double>(five.at_peak.total()) ==
        Approx(static_cast<double>(ran.at_peak.total())).epsilon(0.01).margin(kUnknown));
  config.training.accumulation_steps = 3;
  const Simulation three = simulate_small(config, 2, kBatch);
  CHECK(five.tokens_per_step == 5 * 2 * 3 * 33);
  CHECK(five.traffic.at("all_gather").messages == 5 * 11);
  CHECK(five.traffic.at("reduce_scatter").messages == (config.training.sync_every_micro_batch ? 5 * 6 : 6));
  CHECK(five.model_flops == Approx(three.model_flops * 5 / 3));
  CHECK(five.seconds > 1.3 * three.seconds);
  CHECK(five.seconds < 2 * three.seconds);
}

TEST_CASE("simulation: a slow network costs what nothing hides, and recomputation costs a forward") {
  const models::ModelConfig model = models::preset("qwen3-0.6b");
  Hardware fast = accelerator("h100"), slow = fast;
  slow.network_bandwidth = 1e8;
  const Simulation near = simulate({}, model, {16, 8}, fast, {2, 2048});
  const Simulation far = simulate({}, model, {16, 8}, slow, {2, 2048});
  CHECK(far.seconds > 2 * near.seconds);
  CHECK(far.waited_seconds > far.seconds / 2);
  config::Config config;
  config.activation_checkpointing.mode = CheckpointingMode::Full;
  const Simulation again = simulate({config, {}, {}}, model, {16, 8}, fast, {2, 2048});
  CHECK(again.computed_flops > 1.1 * near.computed_flops);
  CHECK(again.model_flops == near.model_flops);
}

TEST_CASE("simulation: a backward that need not be deterministic has no scores in memory") {
  config::Config config;
  config.parallel.param_dtype = config::Precision::BFloat16;
  const auto planned = [&config](bool deterministic) {
    config.training.deterministic = deterministic;
    return simulate({config, {}, {}}, models::preset("qwen3-0.6b"), {1, 1}, accelerator("h100"), {1, 32768})
        .at_peak.total();
  };
  // Of one KV head at a time, which is more than a 64th of the device's memory; without them other work needs most.
  constexpr size_t kScores = size_t{2} * 2 * 32768 * 32768;
  CHECK(planned(true) > planned(false) + kScores / 4);
}

TEST_CASE("simulation: rows whose scores are too large for a device are not planned with them") {
  config::Config config;
  config.parallel.param_dtype = config::Precision::BFloat16;
  config.activation_checkpointing.mode = CheckpointingMode::Full;
  const auto planned = [&config](int64_t tokens) {
    return simulate({config, {}, {}}, models::preset("qwen3-0.6b"), {1, 1}, accelerator("h100"), {1, tokens})
        .at_peak.total();
  };
  // Of one KV head 17 GB at 65536 tokens, of the 85 that there are; 4 GB at 32768.
  CHECK(planned(65536) < planned(32768) + (size_t{2} * 2 * 65536 * 65536) / 2);
}

}  // namespace trainyard::train
