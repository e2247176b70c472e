#include "checkpoint/naming.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/files.h"
#include "ranks.h"
#include "support/support.h"

namespace trainyard::checkpoint {
namespace {

using Catch::Contains;
using test::TemporaryFolder;
using Folders = Naming::Folders;

/// A world of one that saves `steps` under a name, as another job than those of other names.
void save_as(const std::filesystem::path& folder, const Naming& naming, const std::vector<int64_t>& steps,
             int64_t keep = 0) {
  rendezvous::MemoryStore store;
  SaverOptions options = options_of(folder, 0, 1);
  options.naming = naming, options.keep = keep, options.job = "job of " + naming.name();
  Saver saver(options, store);
  for (const int64_t step : steps) REQUIRE(saver.save(snapshot_of(step, 0, 1)).saved);
}

int64_t latest_of(const std::filesystem::path& folder, const Naming& naming) {
  Agreement alone;
  const auto found = find_latest(folder, alone, naming);
  return found ? found->step() : -1;
}

}  // namespace

TEST_CASE("naming: a name's checkpoints and pointer are called by it, and its newest are kept", "[checkpoint]") {
  const TemporaryFolder folder;
  const Naming qwen("qwen3_0_6b");
  save_as(folder.path(), qwen, {50, 100, 150}, 2);
  CHECK(read_file(folder / "qwen3_0_6b-latest") == "qwen3_0_6b-150steps\n");
  CHECK_FALSE(std::filesystem::exists(folder / "latest"));
  CHECK_FALSE(std::filesystem::exists(folder / "qwen3_0_6b-50steps"));
  CHECK(latest_of(folder.path(), qwen) == 150);
  CHECK(latest_of(folder.path(), {}) == -1);
  Agreement alone;
  CHECK(locate(folder.path()) == folder / "qwen3_0_6b-150steps");
  CHECK(open_checkpoint(folder.path(), alone).step() == 150);
  CHECK(open_checkpoint(folder / "qwen3_0_6b-100steps", alone).step() == 100);
  CHECK(open_checkpoint(folder / "qwen3_0_6b-latest", alone).step() == 150);
}

TEST_CASE("naming: runs of two names share a folder and leave each other's saves and claims alone", "[checkpoint]") {
  const TemporaryFolder folder;
  const Naming qwen("qwen3"), more("qwen3-8b"), plain;
  rendezvous::MemoryStore store;
  SaverOptions options = options_of(folder.path(), 0, 1);
  options.naming = qwen, options.job = "first";
  Saver first(options, store);
  const auto under_way = folder / ".qwen3-60steps.generation-0.ab-1.tmp";
  std::filesystem::create_directory(under_way);
  save_as(folder.path(), more, {10, 70}, 1);
  save_as(folder.path(), plain, {30}, 1);
  CHECK(std::filesystem::exists(under_way));
  REQUIRE(first.save(snapshot_of(20, 0, 1)).saved);  // nobody else has claimed its name
  CHECK(latest_of(folder.path(), qwen) == 20);
  CHECK(latest_of(folder.path(), more) == 70);
  CHECK(latest_of(folder.path(), plain) == 30);
  CHECK(namings_in(folder.path()).size() == 3);
  CHECK(naming_in(folder.path()) == plain);

  std::filesystem::remove_all(folder / "step-30");
  CHECK_THROWS_WITH(locate(folder.path()), Contains("several names") && Contains("qwen3-latest or "));
  save_as(folder.path(), qwen, {});
  CHECK_FALSE(std::filesystem::exists(under_way));  // its own
}

TEST_CASE("naming: one folder is replaced by each save, and its step is read from it", "[checkpoint]") {
  const TemporaryFolder folder;
  const Naming one("checkpoint_FULL_SHARD", Folders::One);
  save_as(folder.path(), one, {63, 126}, 2);
  CHECK(step_folders(folder.path(), one).size() == 1);
  CHECK(latest_of(folder.path(), one) == 126);
  CHECK(locate(folder.path()) == folder / "checkpoint_FULL_SHARD");
  CHECK(leftovers_in(folder.path()).empty());
  write_file_atomically(folder / "checkpoint_FULL_SHARD/checkpoint.json", "{");
  CHECK_THROWS_WITH(latest_of(folder.path(), one), Contains("none of its 1 checkpoints is intact"));
}

TEST_CASE("naming: a name that is no folder's, or another's, is refused", "[checkpoint]") {
  for (const char* const name : {"a/b", "..", ".hidden", "a b", "latest", "llama-latest", "step-5", "x-5steps"})
    CHECK_THROWS_WITH(Naming(name), Contains("checkpoint.name is '" + std::string(name) + "'"));
  CHECK(Naming("llama3.1-8b").folder_of(7) == "llama3.1-8b-7steps");
}

}  // namespace trainyard::checkpoint
