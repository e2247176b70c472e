// Training on a device beside the same on the CPU: runs, checkpoints, and what reads a model.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "base/error.h"
#include "checkpoint/background_saver.h"
#include "ops/cuda/matmul_scratch.h"
#include "rendezvous/memory_store.h"
#include "run/generate.h"
#include "small_run.h"
#include "support/support.h"
#include "tiny_model.h"
#include "train/gather.h"
#include "train/snapshot.h"

namespace trainyard::train {
namespace {

using config::CheckpointingMode;
using config::Strategy;
using trainyard::test::run_small;
using trainyard::test::skip;

constexpr Device kCuda{DeviceKind::Cuda, 0};
constexpr BatchShape kShortBatch{.rows = 2, .tokens = 7};  // what stands in for a device takes its time

void check_near(const std::vector<double>& seen, const std::vector<double>& expected, double relative) {
  REQUIRE(seen.size() == expected.size());
  for (size_t i = 0; i < seen.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(seen[i] / expected[i] - 1) <= relative);
  }
}

test::Ran run_on(config::DeviceChoice device, config::Config config, int world, int64_t steps = 3) {
  config.device.kind = device;
  return run_small(config, test::tiny_model(), world, kShortBatch, steps);
}

struct Variant {
  std::string name;
  config::Config config;
  double loss = 1e-5, norm = 2e-4;
};

std::vector<Variant> variants() {
  const auto changed = [](const auto& change) {
    config::Config config;
    change(config);
    return config;
  };
  return {{"plain", {}},
          {"accumulated", changed([](auto& c) { c.training.accumulation_steps = 2; })},
          {"kept gathered", changed([](auto& c) { c.parallel.strategy = Strategy::ShardGradOp; })},
          {"replicated", changed([](auto& c) { c.parallel.strategy = Strategy::NoShard; })},
          {"state on the host", changed([](auto& c) { c.parallel.offload = true; })},
          {"state on the host, accumulated", changed([](auto& c) {
             c.parallel.offload = c.training.sync_every_micro_batch = true;
             c.training.accumulation_steps = 2;
           })},
          {"recomputed", changed([](auto& c) { c.activation_checkpointing.mode = CheckpointingMode::Full; })},
          {"activations on the host", changed([](auto& c) {
             c.activation_checkpointing = {CheckpointingMode::Selective, 1, true};
           })},
          {"bfloat16", changed([](auto& c) { c.parallel.param_dtype = config::Precision::BFloat16; }), 1e-2, 1e-1},
          {"bfloat16, state on the host", changed([](auto& c) {
             c.parallel.param_dtype = config::Precision::BFloat16;
             c.parallel.offload = true;
           }),
           1e-2, 1e-1}};
}

}  // namespace

TEST_CASE("device: a run on it takes the way of the same on the CPU, at 1 and 2 ranks", "[train]") {
  if (cuda_devices() == 0) return skip("no CUDA device");
  const Variant variant = GENERATE(from_range(variants()));
  const int world = GENERATE(1, 2);
  CAPTURE(variant.name, world);
  const test::Ran seen = run_on(config::DeviceChoice::Cuda, variant.config, world),
                  expected = run_on(config::DeviceChoice::Cpu, variant.config, world);
  check_near(seen.losses, expected.losses, variant.loss);
  check_near(seen.norms, expected.norms, variant.norm);
}

TEST_CASE("device: attention of a shape that cuDNN takes trains as on the CPU", "[train]") {
  if (cuda_devices() == 0) return skip("no CUDA device");
  models::ModelConfig model = test::tiny_model();
  model.head_dim = 8, model.max_positions = 64;
  const bool deterministic = GENERATE(true, false);
  const auto run = [&](config::DeviceChoice device) {
    config::Config config;
    config.device.kind = device;
    config.training.deterministic = deterministic;
    config.parallel.param_dtype = config::Precision::BFloat16;
    return run_small(config, model, 1, {.rows = 2, .tokens = 64}, 3);
  };
  const test::Ran seen = run(config::DeviceChoice::Cuda), expected = run(config::DeviceChoice::Cpu);
  check_near(seen.losses, expected.losses, 1e-2);
  check_near(seen.norms, expected.norms, 1e-1);
  if (deterministic) CHECK((run(config::DeviceChoice::Cuda).weights == seen.weights));
}

TEST_CASE("device: a run on it repeats bit for bit", "[train][bit_equal]") {
  if (cuda_devices() == 0) return skip("no CUDA device");
  const Variant variant = GENERATE(from_range(variants()));
  CAPTURE(variant.name);
  const auto weights = [&] { return run_on(config::DeviceChoice::Cuda, variant.config, 2, 2).weights; };
  CHECK((weights() == weights()));
}

TEST_CASE("device: with one rank and nothing to cast, parameters and gradients are used where they lie", "[train]") {
  if (cuda_devices() == 0) return skip("no CUDA device");
  const test::Ran ran = run_on(config::DeviceChoice::Cuda, {}, 1);
  CHECK(ran.most[MemoryKind::Gathered] == 0);
}

TEST_CASE("device: a run holds at most what was planned, and no less than that without what a library may ask for",
          "[train]") {
  if (cuda_devices() == 0) return skip("no CUDA device");
  const Variant variant = GENERATE(from_range(variants()));
  const int world = GENERATE(1, 2);
  CAPTURE(variant.name, world);
  const size_t held = run_on(config::DeviceChoice::Cuda, variant.config, world, 2).at_peak.total();
  const size_t planned =
      simulate({variant.config, {}, {}}, test::tiny_model(), {world, world}, accelerator("h100"), kShortBatch)
          .at_peak.total();
  CHECK(held <= planned);
  CHECK(planned <= held + held / 20 + ops::cuda::kMostProductWorkspace);
}

TEST_CASE("device: gradients that overflow are seen there, and the step is skipped", "[train]") {
  if (cuda_devices() == 0) return skip("no CUDA device");
  config::Config config;
  config.parallel.param_dtype = config::Precision::Float16;
  config.training.loss_scale_init = 0x1p40;
  const test::Ran ran = run_on(config::DeviceChoice::Cuda, config, 1, 2);
  CHECK(ran.skipped == std::vector{true, true});
  CHECK(ran.loss_scales == std::vector{0x1p40, 0x1p39});
}

namespace {

/// Rows of a formula; notes each batch.
class NotedLoader final : public data::Loader {
 public:
  NotedLoader(test::FormulaLoader& loader, std::vector<std::string>& notes) : loader_(loader), notes_(notes) {}
  data::Batch next() override {
    notes_.push_back("data");
    return loader_.next();
  }
  [[nodiscard]] nlohmann::json state() const override { return loader_.state(); }
  void load_state(const nlohmann::json& state) override { loader_.load_state(state); }
  [[nodiscard]] int64_t sequences_seen() const override { return loader_.sequences_seen(); }
  [[nodiscard]] int64_t sequences_per_epoch() const override { return loader_.sequences_per_epoch(); }
  [[nodiscard]] int64_t sequences_per_step() const override { return loader_.sequences_per_step(); }
  [[nodiscard]] int64_t sequence_length() const override { return loader_.sequence_length(); }

 private:
  test::FormulaLoader& loader_;
  std::vector<std::string>& notes_;
};

/// What one rank on `device` does in four steps, of which the second is saved, in its order; an error last.
std::vector<std::string> course_of(Device device, double lr = 1e-3) {
  std::vector<std::string> notes;
  test::run_ranks(1, [&](comm::Communicator& comm) {
    const ShardedModel sharded = shard_model(test::tiny_model(), comm, {{1, 1}, {.device = device}});
    fill_random(*sharded.engine, 3);
    optim::AdamW optimizer(*sharded.engine, {});
    optim::LossScaler scaler;
    test::FormulaLoader formula(kShortBatch, test::tiny_model().vocab_size, 1, 0, 1);
    NotedLoader loader(formula, notes);
    Progress progress;
    try {
      Trainer({comm, *sharded.model, *sharded.engine, optimizer, scaler, loader},
              {.total_steps = 4, .schedule = {.peak = lr, .total_steps = 4}},
              {.asked_to_stop = [] { return false; },
               .on_step = [&](const StepResult& step) { notes.push_back(fmt::format("told {}", step.step)); },
               .is_checkpoint_due = [](int64_t step) { return step == 2; },
               .save = [&](const Progress& at) { notes.push_back(fmt::format("saved {}", at.step)); }})
          .run(progress);
    } catch (const NotFiniteError& error) {
      notes.emplace_back(error.what());
    }
    return 0;
  });
  return notes;
}

}  // namespace

TEST_CASE("device: a step is told when the next one is queued, and before it is saved", "[train]") {
  if (cuda_devices() == 0) return skip("no CUDA device");
  using Notes = std::vector<std::string>;
  CHECK(course_of({}) ==
        Notes{"data", "told 1", "data", "told 2", "saved 2", "data", "told 3", "data", "told 4", "saved 4"});
  CHECK(course_of(kCuda) ==
        Notes{"data", "data", "told 1", "told 2", "saved 2", "data", "data", "told 3", "told 4", "saved 4"});
}

TEST_CASE("device: a step that is not finite ends the run, is not saved, and is named as on the CPU", "[train]") {
  if (cuda_devices() == 0) return skip("no CUDA device");
  const std::vector<std::string> seen = course_of(kCuda, 1e38), expected = course_of({}, 1e38);
  CHECK(seen.back() == expected.back());
  CHECK_THAT(seen.back(), Catch::Contains("step 2: loss nan") && Catch::Contains("the first bad tensor is model."));
  CHECK(std::ranges::count(seen, "told 1") == 1);
  CHECK(std::ranges::count(seen, "saved 2") == 0);
}

namespace {

enum class Way { Foreground, Background, Full };

struct Saved {
  std::vector<float> model, optimizer;
  bool operator==(const Saved&) const = default;
};

std::vector<float> elements_of(const std::vector<checkpoint::Shard>& shards) {
  std::vector<float> all;
  for (const checkpoint::Shard& shard : shards) {
    const Tensor here = on_device(shard.local, {});
    all.insert(all.end(), here.values<float>().begin(), here.values<float>().end());
  }
  return all;
}

/// Throws, which is a rank's way to fail a test, where nothing was saved.
void require_saved(const checkpoint::SaveResult& result) {
  if (!result.saved) throw std::runtime_error("step " + std::to_string(result.step) + " was not saved: " + result.reason);
}

/// A model that has trained for two steps on `device`, by rank what it holds; saved in `folder` where `way` says how.
std::vector<Saved> train_and_save(Device device, int world, const std::filesystem::path& folder, Way way) {
  rendezvous::MemoryStore store;
  return test::run_ranks(world, [&](comm::Communicator& comm) {
    const ShardedModel sharded = shard_model(test::tiny_model(), comm, {{1, world}, {.device = device}});
    fill_random(*sharded.engine, 3);
    optim::AdamW optimizer(*sharded.engine, {});
    optim::LossScaler scaler;
    test::FormulaLoader loader(kShortBatch, test::tiny_model().vocab_size, 1, comm.rank(), world);
    Parts parts{comm, *sharded.model, *sharded.engine, optimizer, scaler, loader};
    Progress progress;
    const Plan plan{.total_steps = 2, .schedule = optim::schedule_of({}, 2)};
    Saved held;
    Trainer(parts, plan,
            {.asked_to_stop = [] { return false; },
             .on_step = [](const StepResult&) {},
             .is_checkpoint_due = [](int64_t) { return false; },
             .save =
                 [&](const Progress&) {
                   checkpoint::Saver saver({.folder = folder, .rank = comm.rank(), .world = world}, store);
                   const checkpoint::Snapshot whole =
                       snapshot_of(parts, progress, {.config_json = models::to_hugging_face(test::tiny_model())});
                   held = {elements_of(whole.model), elements_of(whole.optimizer)};
                   if (way == Way::Foreground) require_saved(saver.save(whole));
                   if (way == Way::Full)
                     require_saved(saver.save_full(whole, [&](const checkpoint::Shard& shard) {
                       return gather_rows(comm, shard.local, shard.global_shape, shard.name);
                     }));
                   if (way != Way::Background) return;
                   checkpoint::BackgroundSaver background(saver);
                   background.start(whole);
                   background.behind_copies();
                   for (const auto& shard : sharded.engine->shards()) {  // as the next step would
                     Tensor value = shard.value;
                     copy(Tensor::zeros(value.shape(), DType::Float32), value);
                   }
                   require_saved(background.wait().value());
                 }})
        .run(progress);
    return held;
  });
}

std::vector<Saved> load(Device device, int world, const std::filesystem::path& folder) {
  return test::run_ranks(world, [&](comm::Communicator& comm) {
    const ShardedModel sharded = shard_model(test::tiny_model(), comm, {{1, world}, {.device = device}});
    optim::AdamW optimizer(*sharded.engine, {});
    optim::LossScaler scaler;
    test::FormulaLoader loader(kShortBatch, test::tiny_model().vocab_size, 1, comm.rank(), world);
    Parts parts{comm, *sharded.model, *sharded.engine, optimizer, scaler, loader};
    const Progress resumed = restore(parts, checkpoint::Checkpoint(folder / "step-2"), test::tiny_model());
    if (resumed.step != 2) throw std::runtime_error("resumed at step " + std::to_string(resumed.step) + ", not 2");
    const checkpoint::Snapshot whole = snapshot_of(parts, {}, {});
    return Saved{elements_of(whole.model), elements_of(whole.optimizer)};
  });
}

}  // namespace

TEST_CASE("device: a checkpoint saved on it resumes on the CPU, and the other way round, bit for bit", "[train][bit_equal]") {
  if (cuda_devices() == 0) return skip("no CUDA device");
  const auto [from, to] = GENERATE(table<Device, Device>({{kCuda, Device{}}, {Device{}, kCuda}, {kCuda, kCuda}}));
  const Way way = GENERATE(Way::Foreground, Way::Background, Way::Full);
  const int world = GENERATE(1, 2);
  CAPTURE(to_string(from), to_string(to), static_cast<int>(way), world);
  const test::TemporaryFolder folder;
  const std::vector<Saved> saved = train_and_save(from, world, folder.path(), way);
  CHECK(load(to, world, folder.path()) == saved);
}

TEST_CASE("device: rank 0's values reach every rank's shards there", "[train]") {
  if (cuda_devices() == 0) return skip("no CUDA device");
  const auto filled = [](Device device, FilledBy by) {
    return test::run_ranks(2, [&](comm::Communicator& comm) {
      const ShardedModel sharded = shard_model(test::tiny_model(), comm, {{1, 2}, {.device = device}});
      fill_random(*sharded.engine, 3, by);
      std::vector<float> all;
      for (const auto& shard : sharded.engine->shards()) {
        const Tensor here = on_device(shard.value, {});
        all.insert(all.end(), here.values<float>().begin(), here.values<float>().end());
      }
      return all;
    });
  };
  const auto expected = filled({}, FilledBy::EachRank);
  CHECK(filled(kCuda, FilledBy::EachRank) == expected);
  CHECK(filled(kCuda, FilledBy::Rank0) == expected);
}

TEST_CASE("device: a text made there is the CPU's", "[train]") {
  if (cuda_devices() == 0) return skip("no CUDA device");
  const auto text = [](Device device) {
    return test::run_ranks(
               1,
               [&](comm::Communicator& comm) {
                 const ShardedModel sharded = shard_model(test::tiny_model(), comm, {{1, 1}, {.device = device}});
                 fill_random(*sharded.engine, 3);
                 return generate(models::language_model(*sharded.model), std::vector<int32_t>{1, 2, 3},
                                 {.max_new_tokens = 6, .temperature = 0}, comm);
               })
        .front();
  };
  CHECK(text(kCuda) == text({}));
}

}  // namespace trainyard::train
