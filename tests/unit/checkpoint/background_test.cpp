#include "checkpoint/background_saver.h"

#include <semaphore>

#include "base/error.h"
#include "faulty_disk.h"
#include "ranks.h"
#include "support/support.h"

namespace trainyard::checkpoint {
namespace {

using Catch::Contains;
using test::TemporaryFolder;

/// The real disk, but the first file waits until it is let through: a slow write, without a clock.
class HeldDisk : public FaultyDisk {
 public:
  HeldDisk() : FaultyDisk(-1, Fault::Once) {}
  void release() { released_.release(); }
  std::unique_ptr<ByteSink> create(const std::filesystem::path& file) override {
    if (!is_through_.exchange(true)) released_.acquire();
    return FaultyDisk::create(file);
  }

 private:
  std::atomic<bool> is_through_{false};
  std::binary_semaphore released_{0};
};

void overwrite(Snapshot& snapshot) {
  for (std::vector<Shard>* const shards : {&snapshot.model, &snapshot.optimizer})
    for (Shard& shard : *shards) std::ranges::fill(shard.local.values<float>(), -1.0F);
}

/// Saves `steps` behind a "training" that overwrites its tensors as soon as a save has been started.
std::vector<SaveResult> save_behind(Saver& saver, int rank, int world, const std::vector<int64_t>& steps) {
  BackgroundSaver background(saver);
  std::vector<SaveResult> results;
  const auto keep = [&](std::optional<SaveResult> result) {
    if (result) results.push_back(*std::move(result));
  };
  for (const int64_t step : steps) {
    keep(background.wait());
    Snapshot snapshot = snapshot_of(step, rank, world);
    background.start(snapshot);
    overwrite(snapshot);
    keep(background.poll());
  }
  keep(background.wait());
  return results;
}

}  // namespace

TEST_CASE("background save: holds what the tensors were when it was started, at any world", "[checkpoint]") {
  const int world = GENERATE(1, 2, 3);
  const TemporaryFolder folder;
  rendezvous::MemoryStore store;
  const auto results = run_ranks(world, [&](int rank) {
    Saver saver(options_of(folder.path(), rank, world), store);
    return save_behind(saver, rank, world, {10, 20, 30});
  });
  for (const auto& each : results) {
    REQUIRE(each.size() == 3);
    for (size_t i = 0; i < each.size(); ++i) {
      CHECK(each[i].saved);
      CHECK(each[i].step == static_cast<int64_t>(i + 1) * 10);
    }
  }
  CHECK(latest_step(folder.path()) == 30);
  CHECK(wrong_elements(Checkpoint(folder / "step-30"), 0, 1) == 0);
  CHECK(leftovers_in(folder.path()).empty());
}

TEST_CASE("background save: start returns while the disk stands still, and the next save waits for it",
          "[checkpoint]") {
  const TemporaryFolder folder;
  rendezvous::MemoryStore store;
  const auto disk = std::make_shared<HeldDisk>();
  Saver saver(options_of(folder.path(), 0, 1), store, disk);
  BackgroundSaver background(saver);
  background.start(snapshot_of(10, 0, 1));
  CHECK_FALSE(background.poll().has_value());
  CHECK_THROWS_AS(background.start(snapshot_of(20, 0, 1)), std::logic_error);
  disk->release();
  const auto first = background.wait();
  REQUIRE(first.has_value());
  CHECK(first->step == 10);
  CHECK_FALSE(background.wait().has_value());  // told once
  background.start(snapshot_of(20, 0, 1));
  CHECK(background.wait()->saved);
  CHECK(latest_step(folder.path()) == 20);
}

TEST_CASE("background save: its copies take the same memory in every save", "[checkpoint]") {
  const TemporaryFolder folder;
  rendezvous::MemoryStore store;
  Saver saver(options_of(folder.path(), 0, 1), store);
  BackgroundSaver background(saver);
  const Snapshot snapshot = snapshot_of(10, 0, 1);
  const auto ledger = std::make_shared<MemoryLedger>();
  const MemoryScope scope(ledger);
  background.reserve(snapshot);
  const size_t reserved = ledger->held_bytes();
  CHECK(reserved > 0);
  background.start(snapshot);
  background.wait();
  CHECK(ledger->peak_bytes() == reserved);
}

TEST_CASE("background save: killed between any two operations of the disk, the old one or the new one is there, whole",
          "[checkpoint]") {
  for (int64_t operation = 0;; ++operation) {
    const TemporaryFolder folder;
    save_steps(folder.path(), 1, {50});
    const auto disk = std::make_shared<FaultyDisk>(operation, Fault::Forever);
    rendezvous::MemoryStore store;
    Saver saver(options_of(folder.path(), 0, 1), store, disk);
    const auto results = save_behind(saver, 0, 1, {60});
    INFO("killed at operation " << operation);
    REQUIRE(results.size() == 1);
    Agreement alone;
    const auto found = find_latest(folder.path(), alone);
    REQUIRE(found.has_value());
    CHECK(wrong_elements(*found, 0, 1) == 0);
    if (!results[0].saved) CHECK_THAT(results[0].reason, Contains("No space left on device"));
    if (!disk->has_failed()) break;
    CHECK(operation < 200);
  }
}

TEST_CASE("background save: given up because a rank is lost, it ends at once and leaves the older one",
          "[checkpoint]") {
  const TemporaryFolder folder;
  save_steps(folder.path(), 3, {10});
  rendezvous::MemoryStore store;
  const auto errors = run_ranks(3, [&](int rank) -> std::string {
    Saver saver(options_of(folder.path(), rank, 3), store);
    if (rank == 2) return "";  // lost before it could write
    BackgroundSaver background(saver);
    background.start(snapshot_of(20, rank, 3));
    saver.give_up();
    try {
      background.wait();
    } catch (const PeerError& error) {
      return error.what();
    }
    return "";
  });
  for (const int rank : {0, 1}) CHECK_THAT(errors[static_cast<size_t>(rank)], Contains("given up, as a rank is lost"));
  CHECK(latest_step(folder.path()) == 10);
}

}  // namespace trainyard::checkpoint
