// The models that PyTorch's tutorials begin with, against PyTorch on two gloo ranks: reference/first_models.
#include <catch2/catch.hpp>

#include <cmath>
#include <nlohmann/json.hpp>

#include "assemble/sharded_model.h"
#include "base/files.h"
#include "data/images.h"
#include "data/loaders.h"
#include "mnist_files.h"
#include "parity_case.h"
#include "support/ranks.h"
#include "support/support.h"
#include "train/trainer.h"
#include "train/validation.h"

namespace trainyard::test {
namespace {

nlohmann::json golden(const std::string& name) {
  return nlohmann::json::parse(read_file(case_folder(name) / "golden.json"));
}

struct Run {
  std::vector<double> loss, grad_norm;
};

struct Job {
  std::filesystem::path weights;
  double lr = 0, clip_grad_norm = 0;
  int64_t steps = 0;
  train::MeshSize mesh;
  shard::Policy policy;
};

config::Optimizer adam(double lr) {
  return {.lr = lr, .decay = config::Decay::Constant, .betas = {0.9, 0.999}, .weight_decay = 0};
}

Run train_job(train::ShardedModel& sharded, comm::Communicator& world, data::Loader& loader, const Job& job) {
  train::fill_from_weights(sharded, {job.weights});
  optim::AdamW optimizer(*sharded.engine, adam(job.lr));
  optim::LossScaler scaler;
  Run seen;
  train::Trainer trainer({world, *sharded.model, *sharded.engine, optimizer, scaler, loader},
                         {.total_steps = job.steps,
                          .clip_grad_norm = job.clip_grad_norm,
                          .schedule = optim::schedule_of(adam(job.lr), job.steps)},
                         {.asked_to_stop = [] { return false; },
                          .on_step =
                              [&](const train::StepResult& step) {
                                seen.loss.push_back(step.loss);
                                seen.grad_norm.push_back(step.grad_norm);
                              },
                          .is_checkpoint_due = [](int64_t) { return false; },
                          .save = [](const train::Progress&) {}});
  train::Progress progress;
  trainer.run(progress);
  return seen;
}

models::ModelConfig config_of(const std::string& name) {
  const auto file = case_folder(name) / "config.json";
  return models::parse_config(read_file(file), file);
}

Run train_tutorial(train::MeshSize mesh, const shard::Policy& policy) {
  const auto folder = case_folder("tutorial");
  const models::ModelConfig config = config_of("tutorial");
  return run_ranks(mesh.replicate * mesh.shard,
                   [&](comm::Communicator& world) {
                     auto sharded = train::shard_model(config, world, {mesh, policy});
                     const auto loader =
                         data::token_batches(folder / "golden.safetensors", {.place = {world.rank(), world.world()}});
                     return train_job(sharded, world, *loader, {folder, 1e-2, 1.0, 10, mesh, policy});
                   })
      .front();
}

void check_near(const std::vector<double>& seen, const nlohmann::json& expected, double relative) {
  REQUIRE(seen.size() == expected.size());
  for (size_t i = 0; i < seen.size(); ++i) {
    CAPTURE(i, seen[i], expected[i].get<double>());
    CHECK(std::abs(seen[i] / expected[i].get<double>() - 1) <= relative);
  }
}

}  // namespace

TEST_CASE("tutorial: the ten losses of the FSDP2 example are PyTorch's, with and without prefetching", "[parity]") {
  const auto [mode, prefetch] = GENERATE(table<std::string, shard::Prefetch>(
      {{"plain", {}}, {"explicit_prefetching", {.forward = 2, .backward = 2, .early = true}}}));
  CAPTURE(mode);
  const Run seen = train_tutorial({1, 2}, {.prefetch = prefetch});
  const nlohmann::json expected = golden("tutorial").at(mode);
  check_near(seen.loss, expected.at("loss"), 1e-5);
  check_near(seen.grad_norm, expected.at("grad_norm"), 1e-5);
}

TEST_CASE("tutorial: any number of ranks and any strategy take the same way", "[parity]") {
  // The loss is the ranks' mean of their sums; the clipped gradient, and so the way, is the same for any scale.
  const auto mesh =
      GENERATE(train::MeshSize{1, 1}, train::MeshSize{1, 3}, train::MeshSize{2, 1}, train::MeshSize{2, 2});
  const int world = mesh.replicate * mesh.shard;
  Run seen = train_tutorial(mesh, {});
  for (double& loss : seen.loss) loss *= world / 2.0;
  check_near(seen.loss, golden("tutorial").at("plain").at("loss"), 1e-5);
}

TEST_CASE("tutorial: mixed precision follows PyTorch's float32 as near as bfloat16 can", "[parity]") {
  // PyTorch's own bfloat16 run on a CPU is farther off: it adds up the norms' gradients in bfloat16.
  const Run seen = train_tutorial({1, 2}, {.precision = {.param_dtype = DType::BFloat16}});
  check_near(seen.loss, golden("tutorial").at("plain").at("loss"), 1e-2);
  const auto first_of = [](const char* mode) { return golden("tutorial").at(mode).at("loss").at(0).get<double>(); };
  const double rounding = std::abs(first_of("mixed_precision") - first_of("plain"));  // of a sum that mostly cancels
  CHECK(std::abs(seen.loss.front() - first_of("mixed_precision")) < rounding);
}

TEST_CASE("mnist: losses and accuracy of the DDP example are PyTorch's, replicated and sharded", "[parity]") {
  const auto mesh = GENERATE(train::MeshSize{2, 1}, train::MeshSize{1, 2});
  const nlohmann::json expected = golden("mnist");
  const TemporaryFolder folder;
  write_images(folder.path(), expected.at("images"), expected.at("tested"));
  write_mnist_weights(folder.path());
  const models::ModelConfig config = config_of("mnist");
  const auto [seen, validated] =
      run_ranks(2, [&](comm::Communicator& world) {
        const auto loader_of = [&](data::Part part, data::Repeat repeat) {
          return data::image_loader(data::read_images(folder.path(), part, config.cnn.classes),
                                    {.place = {world.rank(), world.world()},
                                     .batch_size = 64,
                                     .shuffle = false,
                                     .repeat = repeat,
                                     .mean = static_cast<float>(config.cnn.image_mean),
                                     .std = static_cast<float>(config.cnn.image_std)});
        };
        auto sharded = train::shard_model(config, world, {mesh, {}});
        const auto training = loader_of(data::Part::Training, data::Repeat::Forever);
        const auto steps = static_cast<int64_t>(expected.at("loss").size());
        const Run run = train_job(sharded, world, *training, {folder.path(), 1e-3, 0, steps, mesh, {}});
        train::Validation held_out(loader_of(data::Part::Test, data::Repeat::Never), 0);
        return std::pair(run, held_out.run(world, *sharded.model, *sharded.engine));
      }).front();
  check_near(seen.loss, expected.at("loss_float64"), 1e-5);
  check_near(seen.loss, expected.at("loss"),
             5e-5);  // PyTorch's float32 strays by 3e-5, and another of its kernels by 5e-5
  CHECK(validated.loss == Approx(expected.at("test_loss").get<double>()).epsilon(1e-4));
  CHECK(validated.accuracy.value() == Approx(expected.at("test_accuracy").get<double>()));
}

}  // namespace trainyard::test
