// Copies for a checkpoint beside the device's work, on the stand-in of tests/support/host_cuda, whose streams can be
// late.
#include <cuda_runtime.h>

#include <catch2/catch.hpp>

#include "checkpoint/background_saver.h"
#include "checkpoint/reader.h"
#include "rendezvous/memory_store.h"
#include "small_run.h"
#include "support/support.h"
#include "tiny_model.h"
#include "train/snapshot.h"

namespace trainyard::train {
namespace {

constexpr Device kLate{DeviceKind::Cuda, 0};

void fill(Tensor& tensor, float value) {
  const std::vector<float> values(static_cast<size_t>(tensor.count()), value);
  copy(Tensor::from<float>(values, tensor.shape()), tensor);
}

/// Saves of one rank.
struct Saving {
  const test::TemporaryFolder folder;
  rendezvous::MemoryStore store;
  checkpoint::Saver saver{{.folder = folder.path()}, store};
  checkpoint::BackgroundSaver background{saver};
};

}  // namespace

TEST_CASE("staging: a checkpoint is copied on a stream of its own, behind what came before and before what changes it",
          "[train]") {
  Saving saving;
  Tensor weights = Tensor::empty({8, 4}, DType::Float32, kLate);
  fill(weights, 1);
  const checkpoint::Snapshot snapshot{.step = 3, .model = {{"weight", {8, 4}, 0, weights}}, .optimizer = {}};
  saving.background.behind_copies();  // there are none
  saving.background.reserve(snapshot);
  host_cuda::delay(true);
  fill(weights, 2);
  saving.background.start(snapshot);
  CHECK_FALSE(saving.background.poll());  // nobody has copied anything yet
  saving.background.behind_copies();
  fill(weights, 3);
  host_cuda::delay(false);
  CHECK(saving.background.wait().value().saved);
  const Tensor saved = checkpoint::Checkpoint(saving.folder / "step-3").read_rows("weight", 0, 8);
  CHECK(saved.values<float>()[31] == 2);
  CHECK(on_device(weights, {}).values<float>()[31] == 3);
}

TEST_CASE("staging: training asks before each update, and a save under way holds the weights of its own step",
          "[train]") {
  Saving saving;
  test::run_ranks(1, [&](comm::Communicator& comm) {
    const ShardedModel sharded = shard_model(test::tiny_model(), comm, {{1, 1}, {.device = kLate}});
    fill_random(*sharded.engine, 7);
    optim::AdamW optimizer(*sharded.engine, {});
    optim::LossScaler scaler;
    test::FormulaLoader loader({.rows = 1, .tokens = 4}, test::tiny_model().vocab_size, 1, 0, 1);
    const Parts parts{comm, *sharded.model, *sharded.engine, optimizer, scaler, loader};
    const Tensor& norm = sharded.engine->shards().back().value;
    std::vector<float> saved;
    const auto value = [&] { return on_device(norm, {}).values<float>()[0]; };
    Progress progress;
    Trainer(parts, {.total_steps = 2, .schedule = optim::schedule_of({}, 2)},
            {.asked_to_stop = [] { return false; },
             .on_step = [](const StepResult&) {},
             .before_update = [&] { saving.background.behind_copies(); },
             .is_checkpoint_due = [](int64_t step) { return step == 1; },
             .save =
                 [&](const Progress& at) {
                   saved.push_back(value());
                   if (at.step > 1) return;
                   host_cuda::delay(true);
                   saving.background.start(snapshot_of(parts, at, {}));
                 }})
        .run(progress);
    host_cuda::delay(false);
    CHECK(saving.background.wait().value().saved);
    REQUIRE(saved.size() == 2);
    CHECK(saved[0] != saved[1]);
    const checkpoint::Checkpoint written(saving.folder / "step-1");
    CHECK(written.read_rows(sharded.engine->shards().back().parameter->name(), 0, 1).values<float>()[0] == saved[0]);
  });
}

}  // namespace trainyard::train
