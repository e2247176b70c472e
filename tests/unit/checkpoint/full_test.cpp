#include "base/error.h"
#include "base/files.h"
#include "checkpoint/convert.h"
#include "checkpoint/hugging_face.h"
#include "faulty_disk.h"
#include "ranks.h"
#include "support/support.h"

namespace trainyard::checkpoint {
namespace {

using Catch::Contains;
using test::TemporaryFolder;
namespace fs = std::filesystem;

struct FullSave {
  int world = 1;
  uint64_t max_file_bytes = kMaxWeightFileBytes;
  int faulty = 0;
  std::shared_ptr<Disk> disk = real_disk();
};

/// A world saves step 60 in the full form; what its ranks would gather is known from the formula.
std::vector<SaveResult> save_full(const fs::path& folder, const FullSave& how) {
  rendezvous::MemoryStore store;
  return run_ranks(how.world, [&](int rank) {
    SaverOptions options = options_of(folder, rank, how.world);
    options.max_file_bytes = how.max_file_bytes;
    Snapshot snapshot = snapshot_of(60, rank, how.world);
    snapshot.state["config_json"] = R"({"model_type": "llama"})";
    return Saver(options, store, rank == how.faulty ? how.disk : real_disk())
        .save_full(snapshot,
                   [](const Shard& shard) { return shard_of(shard.name, shard.global_shape, 0, 1, 60).local; });
  });
}

}  // namespace

TEST_CASE("full state: a Hugging Face folder with the optimizer beside it, which any world resumes", "[checkpoint]") {
  const int world = GENERATE(1, 3);
  const TemporaryFolder folder;
  for (const SaveResult& result : save_full(folder.path(), {.world = world})) CHECK(result.saved);
  const fs::path step = folder / "step-60";
  const HuggingFaceWeights weights(step);
  CHECK(weights.names().size() == layers().size());
  CHECK(weights.shape("model.embed_tokens.weight") == Shape{7, 4});
  CHECK(nlohmann::json::parse(read_file(step / "config.json")).at("model_type") == "llama");
  CHECK(fs::exists(step / "optimizer.safetensors"));
  const Checkpoint checkpoint(step);
  CHECK(checkpoint.manifest().world == world);
  CHECK_FALSE(find_damage(checkpoint).has_value());
  for (const int to : {1, 2, 4})
    for (int rank = 0; rank < to; ++rank) CHECK(wrong_elements(checkpoint, rank, to) == 0);
}

TEST_CASE("full state: files of bounded size with an index, both kinds", "[checkpoint]") {
  const TemporaryFolder folder;
  CHECK(save_full(folder.path(), {.world = 2, .max_file_bytes = 60})[0].saved);
  const fs::path step = folder / "step-60";
  CHECK(HuggingFaceWeights(step).path_of("one.weight") == step / "model-00002-of-00002.safetensors");
  CHECK(fs::exists(step / "optimizer.safetensors.index.json"));
  CHECK(wrong_elements(Checkpoint(step), 0, 1) == 0);
}

TEST_CASE("full state: a disk that fails leaves the older checkpoint, and every rank hears the same", "[checkpoint]") {
  for (int64_t operation = 0;; ++operation) {
    const TemporaryFolder folder;
    save_steps(folder.path(), 2, {50});
    const auto disk = std::make_shared<FaultyDisk>(operation, Fault::Forever);
    const auto results = save_full(folder.path(), {.world = 2, .disk = disk});
    INFO("failed from operation " << operation);
    CHECK(results[0].saved == results[1].saved);
    CHECK(results[0].reason == results[1].reason);
    if (!results[0].saved) CHECK_THAT(results[0].reason, Contains("No space left on device"));
    Agreement alone;
    CHECK(wrong_elements(find_latest(folder.path(), alone).value(), 0, 1) == 0);
    if (!disk->has_failed()) break;
  }
}

TEST_CASE("reshard: as another number of ranks would have saved it", "[checkpoint]") {
  const int to = GENERATE(1, 2, 5);
  const TemporaryFolder folder;
  save_steps(folder.path(), 3, {50});
  reshard(Checkpoint(folder / "step-50"), to, folder / "other");
  const Checkpoint written(folder / "other/step-50");
  CHECK(written.manifest().world == to);
  CHECK(latest_step(folder / "other") == 50);
  CHECK_FALSE(find_damage(written).has_value());
  CHECK(wrong_elements(written, 0, 1) == 0);
  CHECK(written.state() == Checkpoint(folder / "step-50").state());
  CHECK_THROWS_WITH(reshard(written, 2, folder / "other"), Contains("not an empty folder"));
}

}  // namespace trainyard::checkpoint
