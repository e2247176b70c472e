// Thirty training steps of the reference, sharded over in-process ranks: data/parity/README.md, "The training loop".
#include <catch2/catch.hpp>

#include <cmath>
#include <fstream>

#include "assemble/loaders.h"
#include "assemble/sharded_model.h"
#include "base/error.h"
#include "data/loaders.h"
#include "parity_case.h"
#include "support/ranks.h"
#include "support/support.h"
#include "train/trainer.h"

namespace trainyard::test {
namespace {

struct Trajectory {
  std::vector<double> loss, grad_norm, lr;
};

struct Setting {
  std::string name;
  train::MeshSize mesh;
  shard::Policy policy;
  int64_t accumulation_steps = 1;
  train::Wrap wrap = {};
  train::ContextParallel context = {};
  tensor_parallel::Options tensor = {};
};

double peak_lr(const ParityCase& parity) {
  return parity.expected.at("training").at("lr").at(4).get<double>();
}

Trajectory trajectory_of(comm::Communicator& world, const Setting& setting) {
  const ParityCase parity = load_case(setting.name);
  const train::Sharding sharding{.mesh = setting.mesh,
                                 .policy = setting.policy,
                                 .wrap = setting.wrap,
                                 .context = setting.context,
                                 .tensor = setting.tensor};
  train::ShardedModel sharded = train::shard_model(parity.config, world, sharding);
  train::fill_from_weights(sharded, {parity.folder});
  config::Optimizer settings{.lr = peak_lr(parity), .warmup_steps = 5, .min_lr_ratio = 0.1};
  optim::AdamW optimizer(*sharded.engine, settings);
  optim::LossScaler scaler;
  const auto loader = train::rows_of_rank(
      data::token_batches(
          parity.folder / "golden.safetensors",
          {.place = train::place_of(setting.mesh, world.rank()), .accumulation_steps = setting.accumulation_steps}),
      sharding, world.rank());
  Trajectory seen;
  train::Trainer trainer({world, *sharded.model, *sharded.engine, optimizer, scaler, *loader},
                         {.total_steps = 30,
                          .accumulation_steps = setting.accumulation_steps,
                          .schedule = optim::schedule_of(settings, 30)},
                         {.asked_to_stop = [] { return false; },
                          .on_step =
                              [&](const train::StepResult& step) {
                                seen.loss.push_back(step.loss);
                                seen.grad_norm.push_back(step.grad_norm);
                                seen.lr.push_back(step.lr);
                              },
                          .is_checkpoint_due = [](int64_t) { return false; },
                          .save = [](const train::Progress&) {}});
  train::Progress progress;
  trainer.run(progress);
  return seen;
}

Trajectory run(const Setting& setting) {
  return run_ranks(setting.mesh.world(),
                   [&](comm::Communicator& world) { return trajectory_of(world, setting); })
      .front();
}

void check_near(const std::vector<double>& seen, const nlohmann::json& expected, double relative) {
  REQUIRE(seen.size() == expected.size());
  for (size_t i = 0; i < seen.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(seen[i] / expected[i].get<double>() - 1) <= relative);
  }
}

}  // namespace

TEST_CASE("training: thirty steps follow PyTorch at 1, 2, 3 and 4 ranks", "[parity]") {
  const auto name = GENERATE(from_range(all_cases()));
  if (case_folder(name).empty()) return skip("no reference data");
  const int world = GENERATE(1, 2, 3, 4);
  CAPTURE(name, world);
  const Trajectory seen = run({name, {1, world}, {}});
  const nlohmann::json training = load_case(name).expected.at("training");
  check_near(seen.lr, training.at("lr"), 1e-12);
  check_near(seen.loss, training.at("loss"), 1e-5);
  check_near(seen.grad_norm, training.at("grad_norm"), 2e-4);
}

TEST_CASE("training: thirty steps on a device follow PyTorch at 1 and 2 ranks", "[parity]") {
  if (cuda_devices() == 0) return skip("no CUDA device");
  const auto name = GENERATE(from_range(all_cases()));
  if (case_folder(name).empty()) return skip("no reference data");
  const int world = GENERATE(1, 2);
  CAPTURE(name, world);
  const Trajectory seen = run({name, {1, world}, {.device = {DeviceKind::Cuda, 0}}});
  const nlohmann::json training = load_case(name).expected.at("training");
  check_near(seen.loss, training.at("loss"), 1e-5);
  check_near(seen.grad_norm, training.at("grad_norm"), 2e-4);
}

TEST_CASE("training: rows that ranks share leave the reference", "[parity]") {
  using context_parallel::Method;
  using Balance = data::RowParts::Balance;
  const std::string name = GENERATE("llama-nd", "qwen3-nd-packed", "qwen3-odd", "llama-packed");
  if (case_folder(name).empty()) return skip("no reference data");
  const auto context = GENERATE(values<train::ContextParallel>({{Method::Ring, Balance::HeadTail},
                                                                {Method::Ring, Balance::None},
                                                                {Method::AllGather, Balance::HeadTail},
                                                                {Method::AllGather, Balance::None},
                                                                {Method::Ulysses, Balance::HeadTail}}));
  // full_shard with a context of 2 and of 4, beside shards and copies; no_shard, whose parameters are whole.
  const auto mesh = GENERATE(values<train::MeshSize>({{.context = 2},
                                                      {.context = 4},
                                                      {.shard = 2, .context = 2},
                                                      {.replicate = 2, .context = 2},
                                                      {.replicate = 2, .context = 2, .replicates_context = true}}));
  // Every model with every method; every mesh with one model, in the two ways that have least in common.
  const bool is_plain = mesh.context == 2 && mesh.world() == 2;
  const bool is_usual = context.method == Method::Ring && context.balance == Balance::HeadTail;
  const bool is_opposite = context.method == Method::AllGather && context.balance == Balance::None;
  if (!is_plain && (name != "llama-nd" || !(is_usual || is_opposite))) return;
  const bool divides_heads = load_case(name).config.heads % mesh.context == 0;
  if (context.method == Method::Ulysses && !divides_heads) return;
  CAPTURE(name, static_cast<int>(context.method), static_cast<int>(context.balance), mesh.replicate, mesh.shard,
          mesh.context);
  const Trajectory seen = run({.name = name, .mesh = mesh, .policy = {}, .context = context});
  const nlohmann::json training = load_case(name).expected.at("training");
  check_near(seen.loss, training.at("loss"), 1e-5);
  check_near(seen.grad_norm, training.at("grad_norm"), 2e-4);
}

TEST_CASE("training: layers that ranks split leave the reference", "[parity]") {
  const auto name = GENERATE(from_range(all_cases()));
  if (case_folder(name).empty()) return skip("no reference data");
  const auto options =
      GENERATE(values<tensor_parallel::Options>({{},
                                                 {.sequence_parallel = false},
                                                 {.loss_parallel = false},
                                                 {.sequence_parallel = false, .loss_parallel = false}}));
  const auto mesh = GENERATE(values<train::MeshSize>({{.tensor = 2},
                                                      {.tensor = 3},
                                                      {.tensor = 4},
                                                      {.shard = 2, .tensor = 2},
                                                      {.replicate = 2, .tensor = 2},
                                                      {.replicate = 2, .shard = 2, .tensor = 2},
                                                      {.context = 2, .tensor = 2},
                                                      {.tensor = 8}}));
  if (load_case(name).config.heads % mesh.tensor != 0) return;
  // Every case with every way at two and three ranks, and one with every mesh.
  const bool is_tensor_alone = mesh.world() == mesh.tensor;
  if (name != "llama-nd" && (!is_tensor_alone || mesh.tensor > 4)) return;
  CAPTURE(name, options.sequence_parallel, options.loss_parallel, mesh.replicate, mesh.shard, mesh.context,
          mesh.tensor);
  const Trajectory seen = run({.name = name, .mesh = mesh, .policy = {}, .tensor = options});
  const nlohmann::json training = load_case(name).expected.at("training");
  check_near(seen.loss, training.at("loss"), 1e-5);
  check_near(seen.grad_norm, training.at("grad_norm"), 2e-4);
}

TEST_CASE("training: no strategy, accumulation or prefetch leaves the reference", "[parity]") {
  if (test_data().empty()) return skip("no reference data");
  const auto setting = GENERATE(values<Setting>({
      {"qwen3-odd", {1, 2}, {.reshard = shard::Reshard::AfterBackward}},
      {"qwen3-odd", {3, 1}, {}},
      {"qwen3-odd", {2, 2}, {}},
      {"qwen3-odd", {1, 2}, {.prefetch = {.forward = 0, .backward = 0}}},
      {"qwen3-odd", {1, 2}, {}, 2},
      {"qwen3-odd", {1, 1}, {}, 3},
      {"llama-packed", {1, 2}, {.sync_every_micro_batch = true}, 2},
      {"qwen3-odd", {2, 1}, {.sync_every_micro_batch = true}, 2},
      {"t5-tiny", {1, 2}, {.reshard = shard::Reshard::AfterBackward}, 2},
      {"t5-tiny", {3, 1}, {.bucket_bytes = 60000}},
      {"t5-tiny", {1, 2}, {}, 1, {.policy = train::Wrap::Policy::Size, .classes = {}, .min_num_params = 2000}},
      {"t5-v1.1-tiny", {2, 2}, {}},
      {"t5-v1.1-tiny", {1, 2}, {}, 1, {.policy = train::Wrap::Policy::Size, .classes = {}, .min_num_params = 900}},
  }));
  CAPTURE(setting.name, setting.mesh.replicate, setting.mesh.shard, setting.accumulation_steps);
  const Trajectory seen = run(setting);
  const nlohmann::json training = load_case(setting.name).expected.at("training");
  check_near(seen.loss, training.at("loss"), 1e-5);
  check_near(seen.grad_norm, training.at("grad_norm"), 2e-4);
}

TEST_CASE("training: weights with more blocks than config.json has are refused, in either stack", "[parity]") {
  const auto refusal = [](const ParityCase& parity) {
    return run_ranks(1, [&](comm::Communicator& world) -> std::string {
      const train::ShardedModel sharded = train::shard_model(parity.config, world, {});
      try {
        train::fill_from_weights(sharded, {parity.folder});
      } catch (const InputError& error) {
        return error.what();
      }
      return "none";
    })[0];
  };
  ParityCase encoder = load_case("t5-v1.1-tiny"), decoder = load_case("t5-v1.1-tiny");
  encoder.config.layers = 1, decoder.config.t5.decoder_layers = 1;
  CHECK_THAT(refusal(encoder), Catch::Contains("holds encoder.block.1.") &&
                                   Catch::EndsWith("the last of these that config.json makes is encoder.block.0"));
  CHECK_THAT(refusal(decoder), Catch::EndsWith("the last of these that config.json makes is decoder.block.0"));
}

TEST_CASE("training: bfloat16 parameters follow PyTorch's bfloat16 run", "[parity]") {
  if (test_data().empty()) return skip("no reference data");
  const int world = GENERATE(1, 2, 3);
  const Trajectory seen = run({"qwen3-tiny", {1, world}, {.precision = {.param_dtype = DType::BFloat16}}});
  const auto expected =
      nlohmann::json::parse(std::ifstream(test_data() / "parity/qwen3-tiny/golden-bf16.json")).at("training");
  CHECK(seen.loss.front() == Approx(expected.at("loss").at(0).get<double>()).epsilon(5e-3));
  check_near(seen.loss, expected.at("loss"), 3e-2);
  check_near(seen.grad_norm, expected.at("grad_norm"), 1e-1);
}

}  // namespace trainyard::test
