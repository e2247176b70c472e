#include <catch2/catch.hpp>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "ranks.h"
#include "support/support.h"

namespace trainyard::checkpoint {

using Catch::Contains;
using test::TemporaryFolder;

TEST_CASE("checkpoint: saved by any world, it loads into any other, bit for bit", "[checkpoint][bit_equal]") {
  const int from = GENERATE(1, 2, 3, 4);
  const TemporaryFolder folder;
  const auto results = save_steps(folder.path(), from, {50});
  for (const auto& each : results) {
    CHECK(each[0].saved);
    CHECK(each[0].path == folder / "step-50");
    CHECK(each[0].bytes == results[0][0].bytes);
  }
  CHECK(leftovers_in(folder.path()).empty());
  for (const int to : {1, 2, 3, 4, 5}) {
    rendezvous::MemoryStore store;
    const auto wrong = run_ranks(to, [&](int rank) {
      Agreement ranks(store, "resume", rank, to, milliseconds(20000));
      return wrong_elements(find_latest(folder.path(), ranks).value(), rank, to);
    });
    CHECK(wrong == std::vector<int64_t>(static_cast<size_t>(to), 0));
  }
}

TEST_CASE("checkpoint: state comes back whole, a rank's own only into the same world", "[checkpoint]") {
  const TemporaryFolder folder;
  save_steps(folder.path(), 3, {50});
  const Checkpoint checkpoint(folder / "step-50");
  CHECK(checkpoint.step() == 50);
  CHECK(checkpoint.state().at("tokens") == 5000);
  REQUIRE(checkpoint.rank_state(2, 3) != nullptr);
  CHECK(checkpoint.rank_state(2, 3)->at("random") == 12);
  CHECK(checkpoint.rank_state(0, 2) == nullptr);
}

TEST_CASE("checkpoint: of a replicated model one copy is written, a part by each replica", "[checkpoint]") {
  const int shard = GENERATE(1, 2);
  const int world = 3 * shard;
  const TemporaryFolder folder;
  rendezvous::MemoryStore store;
  run_ranks(world, [&](int rank) {
    Snapshot part = snapshot_of(5, rank % shard, shard);
    part.holders = {rank % shard, rank % shard + shard, rank % shard + 2 * shard};
    return Saver(options_of(folder.path(), rank, world), store).save(part).saved;
  });
  const Checkpoint checkpoint(folder / "step-5");
  CHECK(checkpoint.manifest().world == world);
  uint64_t once = 0;
  std::set<size_t> files;
  for (const StoredTensor& tensor : checkpoint.manifest().tensors) {
    once += static_cast<uint64_t>(count_of(tensor.shape)) * size_of(tensor.dtype);
    for (const StoredRows& rows : tensor.shards) files.insert(rows.file);
  }
  uint64_t stored = 0;
  for (const StoredFile& file : checkpoint.manifest().files) {
    const SafetensorsFile opened(checkpoint.path() / file.name);
    for (const SafetensorsEntry& entry : opened.entries()) stored += entry.end - entry.begin;
  }
  CHECK(stored == once);
  CHECK(files.size() >= static_cast<size_t>(world));
  CHECK(wrong_elements(checkpoint, 1, 2) == 0);
}

TEST_CASE("checkpoint: files have the names and the metadata of PyTorch's distributed checkpoints", "[checkpoint]") {
  const TemporaryFolder folder;
  save_steps(folder.path(), 2, {50});
  const SafetensorsFile file(folder / "step-50/shard-00002-model-00001-of-00001.safetensors");
  const auto info = nlohmann::json::parse(file.metadata().at("DCP_SHARDING_INFO"));
  CHECK(info == nlohmann::json{{"model.embed_tokens.weight", {{"saved_offsets", {4, 0}}}},
                               {"model.norm.weight", {{"saved_offsets", {2}}}}});
  CHECK(file.metadata().at("format") == "pt");
  CHECK(file.entry("model.embed_tokens.weight").shape == Shape{3, 4});
  CHECK(std::filesystem::exists(folder / "step-50/shard-00001-optim-00001-of-00001.safetensors"));
  CHECK(read_file(folder / "latest") == "step-50\n");
}

TEST_CASE("checkpoint: keeps the newest k, and what latest names whatever k is", "[checkpoint]") {
  const TemporaryFolder folder;
  save_steps(folder.path(), 2, {10, 20, 30, 40}, 2);
  CHECK(step_folders(folder.path()).size() == 2);
  CHECK(latest_step(folder.path()) == 40);
  save_steps(folder.path(), 1, {50}, 1);
  REQUIRE(step_folders(folder.path()).size() == 1);
  CHECK(step_folders(folder.path())[0].step == 50);
}

TEST_CASE("checkpoint: a run that went back leaves what lies past it alone, and resumes from its own", "[checkpoint]") {
  const TemporaryFolder folder;
  save_steps(folder.path(), 1, {10, 90}, 0);
  save_steps(folder.path(), 1, {20, 30}, 1);
  CHECK(latest_step(folder.path()) == 30);
  CHECK(std::filesystem::exists(folder / "step-90/checkpoint.json"));
  CHECK_FALSE(std::filesystem::exists(folder / "step-10"));
  CHECK_FALSE(std::filesystem::exists(folder / "step-20"));
}

TEST_CASE("checkpoint: saving a step again replaces it whole", "[checkpoint]") {
  const TemporaryFolder folder;
  save_steps(folder.path(), 3, {50});
  save_steps(folder.path(), 1, {50});
  CHECK(Checkpoint(folder / "step-50").manifest().world == 1);
  CHECK_FALSE(std::filesystem::exists(folder / "step-50/shard-00003-model-00001-of-00001.safetensors"));
  CHECK(latest_step(folder.path()) == 50);
  CHECK(leftovers_in(folder.path()).empty());
}

TEST_CASE("checkpoint: step_50 is found as step-50 is, folders of other names are not", "[checkpoint]") {
  const TemporaryFolder folder;
  CHECK(latest_step(folder.path()) == -1);
  CHECK(latest_step(folder / "absent") == -1);
  save_steps(folder.path(), 1, {50});
  std::filesystem::rename(folder / "step-50", folder / "step_50");
  std::filesystem::create_directory(folder / "step-x");
  std::filesystem::create_directory(folder / "step-50-old");
  CHECK(latest_step(folder.path()) == 50);
}

TEST_CASE("checkpoint: loading names what does not fit", "[checkpoint]") {
  const TemporaryFolder folder;
  save_steps(folder.path(), 2, {50});
  const Checkpoint checkpoint(folder / "step-50");
  Shard wrong{"model.norm.weight", {4}, 0, Tensor::zeros({4}, DType::Float32)};
  CHECK_THROWS_WITH(checkpoint.read_into(wrong), Contains("'model.norm.weight' has shape [3], the model's has [4]"));
  Shard other_type{"model.norm.weight", {3}, 0, Tensor::zeros({3}, DType::BFloat16)};
  CHECK_THROWS_WITH(checkpoint.read_into(other_type), Contains("is float32, bfloat16 is needed"));
  CHECK_THROWS_WITH(checkpoint.read_rows("none", 0, 1), Contains("no tensor 'none'"));
  CHECK_THROWS_WITH(checkpoint.read_rows("model.norm.weight", 2, 2), Contains("2 rows from 2 on of shape [3]"));
  Agreement alone;
  CHECK_THROWS_WITH(open_checkpoint(folder / "none", alone), Contains("no such folder"));
  CHECK(open_checkpoint(folder.path(), alone).step() == 50);
  CHECK(open_checkpoint(folder / "step-50", alone).step() == 50);
  CHECK(open_checkpoint(folder / "step_50", alone).step() == 50);
  CHECK(locate(folder / "step_50/") == folder / "step-50");
}

}  // namespace trainyard::checkpoint
