#include <linux/capability.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "faulty_disk.h"
#include "ranks.h"
#include "support/captured_log.h"
#include "support/support.h"

namespace trainyard::checkpoint {
namespace {

using Catch::Contains;
using test::CapturedLog;
using test::TemporaryFolder;
namespace fs = std::filesystem;

/// A world of `world` in which rank `faulty` has `disk`, saving step 60 into a folder.
std::vector<SaveResult> save_with(const fs::path& folder, int world, int faulty, const std::shared_ptr<Disk>& disk) {
  rendezvous::MemoryStore store;
  return run_ranks(world, [&](int rank) {
    SaverOptions options = options_of(folder, rank, world);
    options.keep = 1;
    return Saver(options, store, rank == faulty ? disk : real_disk()).save(snapshot_of(60, rank, world));
  });
}

void flip_byte(const fs::path& path, int64_t from_end) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-from_end, std::ios::end);
  const char old = static_cast<char>(file.get());
  file.seekp(-from_end, std::ios::end);
  file.put(static_cast<char>(old ^ 1));
}

/// Takes from the calling thread what lets root read every file.
class AsAnybody {
 public:
  AsAnybody() {
    ::syscall(SYS_capget, &header_, before_);
    __user_cap_data_struct now[2] = {before_[0], before_[1]};
    now[0].effective &= ~(1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH);
    ::syscall(SYS_capset, &header_, now);
  }
  ~AsAnybody() { ::syscall(SYS_capset, &header_, before_); }
  AsAnybody(const AsAnybody&) = delete;
  AsAnybody& operator=(const AsAnybody&) = delete;

 private:
  __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct before_[2]{};
};

}  // namespace

TEST_CASE("checkpoint: killed between any two operations of the disk, the old one or the new one is there, whole",
          "[checkpoint]") {
  int64_t old_ones = 0, new_ones = 0;
  for (int64_t operation = 0;; ++operation) {
    const TemporaryFolder folder;
    save_steps(folder.path(), 1, {50});
    const auto disk = std::make_shared<FaultyDisk>(operation, Fault::Forever);
    save_with(folder.path(), 1, 0, disk);
    INFO("killed at operation " << operation);
    Agreement alone;
    const auto found = find_latest(folder.path(), alone);
    REQUIRE(found.has_value());
    CHECK(wrong_elements(*found, 0, 1) == 0);
    (found->step() == 60 ? new_ones : old_ones) += 1;
    // The next life clears up what the kill left and goes on.
    save_steps(folder.path(), 1, {70}, 2);
    CHECK(leftovers_in(folder.path()).empty());
    CHECK(latest_step(folder.path()) == 70);
    if (!disk->has_failed()) break;
  }
  CHECK(old_ones > 10);
  CHECK(new_ones > 1);
}

TEST_CASE("checkpoint: a disk that fails once on any rank gives every rank the same outcome, and the next save works",
          "[checkpoint]") {
  const int faulty = GENERATE(0, 1);
  for (int64_t operation = 0;; ++operation) {
    const TemporaryFolder folder;
    save_steps(folder.path(), 2, {50});
    const auto disk = std::make_shared<FaultyDisk>(operation, Fault::Once);
    const auto results = save_with(folder.path(), 2, faulty, disk);
    if (!disk->has_failed()) break;
    INFO("rank " << faulty << " failed at operation " << operation);
    CHECK(results[0].saved == results[1].saved);
    CHECK(results[0].reason == results[1].reason);
    if (!results[0].saved) {
      CHECK_THAT(results[0].reason, Contains("rank " + std::to_string(faulty)) && Contains("No space left on device") &&
                                        Contains(folder.path().string()));
      CHECK(latest_step(folder.path()) >= 50);
    }
    const auto again = save_steps(folder.path(), 2, {61}, 1);
    CHECK(again[1][0].saved);
    CHECK(leftovers_in(folder.path()).empty());
  }
}

TEST_CASE(
    "checkpoint: a full disk in the middle of a save is told with path and bytes, and the older checkpoint is intact",
    "[checkpoint]") {
  const TemporaryFolder folder;
  save_steps(folder.path(), 2, {50});
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 64 * 1024, .rlim_max = before.rlim_max};
  std::vector<SaveResult> results;
  {
    rendezvous::MemoryStore store;
    results = run_ranks(2, [&](int rank) {
      Saver saver(options_of(folder.path(), rank, 2), store);
      Snapshot large = snapshot_of(60, rank, 2);
      large.model.push_back(shard_of("large.weight", {40'000, 1}, rank, 2, 60));
      if (rank == 0 && ::setrlimit(RLIMIT_FSIZE, &small) != 0) throw std::runtime_error("setrlimit");
      return saver.save(large);
    });
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  for (const SaveResult& result : results) {
    CHECK_FALSE(result.saved);
    CHECK_THAT(result.reason, Contains("write after 65536 bytes: File too large") && Contains("shard-0000"));
  }
  CHECK(leftovers_in(folder.path()).empty());
  CHECK(latest_step(folder.path()) == 50);
}

TEST_CASE("checkpoint: on a file system of 10 MB a save that does not fit fails loudly, the next smaller one works",
          "[checkpoint]") {
  const TemporaryFolder parent;
  const fs::path folder = parent / "small";
  fs::create_directory(folder);
  if (::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=10m") != 0) return test::skip("mounting a tmpfs needs root");
  rendezvous::MemoryStore store;
  const auto results = run_ranks(2, [&](int rank) {
    Saver saver(options_of(folder, rank, 2), store);
    std::vector<SaveResult> seen{saver.save(snapshot_of(50, rank, 2))};
    Snapshot large = snapshot_of(60, rank, 2);
    large.model.push_back(shard_of("large.weight", {4'000'000, 1}, rank, 2, 60));
    seen.push_back(saver.save(large));
    seen.push_back(saver.save(snapshot_of(70, rank, 2)));
    return seen;
  });
  const int64_t latest = latest_step(folder);
  const auto leftovers = leftovers_in(folder);
  const int unmounted = ::umount(folder.c_str());
  CHECK(results[1][0].saved);
  CHECK_FALSE(results[1][1].saved);
  CHECK_THAT(results[1][1].reason, Contains("No space left on device"));
  CHECK(results[1][2].saved);
  CHECK(latest == 70);
  CHECK(leftovers.empty());
  CHECK(unmounted == 0);
}

TEST_CASE("checkpoint: a damaged file is named and the checkpoint before it used", "[checkpoint]") {
  const std::string file = GENERATE("shard-00002-model-00001-of-00001.safetensors",
                                    "shard-00001-optim-00001-of-00001.safetensors", "checkpoint.json");
  const auto damage = GENERATE(0, 1, 2);
  const TemporaryFolder folder;
  save_steps(folder.path(), 2, {40, 50});
  const fs::path path = folder.path() / "step-50" / file;
  if (damage == 0) fs::resize_file(path, fs::file_size(path) - 5);
  if (damage == 1) flip_byte(path, 7);
  if (damage == 2) fs::remove(path);
  const CapturedLog log;
  CHECK(latest_step(folder.path()) == 40);
  CHECK_THAT(log.text(), Contains("step-50 is damaged") && Contains(file));
  rendezvous::MemoryStore store;
  const auto steps = run_ranks(3, [&](int rank) {
    Agreement ranks(store, "resume", rank, 3, milliseconds(20000));
    return find_latest(folder.path(), ranks)->step();
  });
  CHECK(steps == std::vector<int64_t>(3, 40));
}

TEST_CASE("checkpoint: one of a newer version is refused as such, and none before it stands in for it",
          "[checkpoint]") {
  const TemporaryFolder folder;
  save_steps(folder.path(), 2, {40, 50});
  auto manifest = nlohmann::json::parse(read_file(folder / "step-50/checkpoint.json"));
  manifest["version"] = 3;
  write_file_atomically(folder / "step-50/checkpoint.json", manifest.dump());
  rendezvous::MemoryStore store;
  const auto errors = run_ranks(2, [&](int rank) -> std::string {
    Agreement ranks(store, "resume", rank, 2, milliseconds(20000));
    try {
      static_cast<void>(find_latest(folder.path(), ranks));
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  });
  for (const std::string& error : errors)
    CHECK_THAT(error,
               Contains("step-50/checkpoint.json: version 3 of the format, and this program reads versions up to 2"));
}

TEST_CASE("checkpoint: a file that may not be read is not damaged, and nothing before it stands in for it",
          "[checkpoint]") {
  const std::string file = GENERATE("shard-00002-optim-00001-of-00001.safetensors", "checkpoint.json");
  const TemporaryFolder folder;
  save_steps(folder.path(), 2, {40, 50});
  const fs::path path = folder.path() / "step-50" / file;
  fs::permissions(path, fs::perms::none);
  rendezvous::MemoryStore store;
  const auto errors = run_ranks(2, [&](int rank) -> std::string {
    const AsAnybody this_thread;
    Agreement ranks(store, "resume", rank, 2, milliseconds(20000));
    std::string said;
    try {
      // whose a manifest is cannot be told then
      const bool is_manifest = file == "checkpoint.json";
      static_cast<void>(is_manifest ? find_latest_of("a-job", folder.path(), ranks) : find_latest(folder.path(), ranks));
    } catch (const InputError& error) {
      said = error.what();
    }
    return said;
  });
  for (const std::string& error : errors)
    CHECK_THAT(error, Catch::StartsWith(path.string() + ": Permission denied; let the user that trains read it"));
}

TEST_CASE("checkpoint: shards that were swapped between ranks are told as damage", "[checkpoint]") {
  const TemporaryFolder folder;
  save_steps(folder.path(), 2, {40, 50});
  const fs::path first = folder / "step-50/shard-00001-model-00001-of-00001.safetensors",
                 second = folder / "step-50/shard-00002-model-00001-of-00001.safetensors";
  fs::rename(first, folder / "aside");
  fs::rename(second, first);
  fs::rename(folder / "aside", second);
  const CapturedLog log;
  CHECK(latest_step(folder.path()) == 40);
  CHECK_THAT(log.text(), Contains("step-50 is damaged") && Contains("shard-0000"));
}

TEST_CASE("checkpoint: where none is intact, resuming is refused instead of starting afresh", "[checkpoint]") {
  const TemporaryFolder folder;
  save_steps(folder.path(), 1, {50});
  flip_byte(folder / "step-50/shard-00001-model-00001-of-00001.safetensors", 1);
  Agreement alone;
  CHECK_THROWS_AS(find_latest(folder.path(), alone), InputError);
  CHECK_THROWS_WITH(find_latest(folder.path(), alone),
                    Contains("none of its 1 checkpoints is intact") && Contains("its content has changed"));
  CHECK_THROWS_WITH(open_checkpoint(folder / "step-50", alone), Contains("damaged"));
}

TEST_CASE("checkpoint: a pointer to nowhere, or a damaged one, falls back to the newest", "[checkpoint]") {
  const std::string pointer = GENERATE("step-60\n", "", "../../etc\n", "step-50/../step-50");
  const TemporaryFolder folder;
  save_steps(folder.path(), 1, {40, 50});
  std::ofstream(folder / "latest") << pointer;
  CHECK(latest_step(folder.path()) == 50);
}

TEST_CASE("checkpoint: a newest folder that somebody removed is named, with what is gone back to", "[checkpoint]") {
  const TemporaryFolder folder;
  save_steps(folder.path(), 1, {40, 50});
  {
    const CapturedLog log;
    CHECK(latest_step(folder.path()) == 50);
    CHECK(log.text() == "");
  }
  fs::remove_all(folder / "step-50");
  {
    const CapturedLog log;
    CHECK(latest_step(folder.path()) == 40);
    CHECK_THAT(log.text(), Contains("the newest checkpoint, step-50, is not there any more; going back to step-40"));
  }
  fs::remove_all(folder / "step-40");
  const CapturedLog log;
  Agreement alone;
  CHECK_FALSE(find_latest(folder.path(), alone));
  CHECK_THAT(log.text(), Contains("step-50, is not there any more; there is none before it"));
}

TEST_CASE("checkpoint: a folder that is a symbolic link to nothing is called one", "[checkpoint]") {
  const TemporaryFolder folder;
  fs::create_symlink("/nowhere/at/all", folder / "link");
  CHECK_THROWS_WITH(check_writable(folder / "link"),
                    Contains("is a symbolic link to /nowhere/at/all, which is not there"));
  CHECK_THROWS_WITH(check_writable(folder / "link/below"), Contains("is a symbolic link to /nowhere/at/all"));
}

TEST_CASE("checkpoint: a newer generation refuses the commits of an older one, and its start", "[checkpoint]") {
  const TemporaryFolder folder;
  rendezvous::MemoryStore store;
  const auto saver_of = [&](int64_t generation, const std::string& job) {
    SaverOptions options = options_of(folder.path(), 0, 1);
    options.generation = generation;
    options.job = job;
    return std::make_unique<Saver>(options, store);
  };
  const auto old_one = saver_of(1, "job");
  CHECK(old_one->save(snapshot_of(50, 0, 1)).saved);
  const auto new_one = saver_of(2, "job");
  const SaveResult refused = old_one->save(snapshot_of(60, 0, 1));
  CHECK_FALSE(refused.saved);
  CHECK_THAT(refused.reason, Contains("generation 2 of this job has claimed the folder"));
  CHECK_FALSE(fs::exists(folder / "step-60"));
  CHECK(latest_step(folder.path()) == 50);
  CHECK(new_one->save(snapshot_of(60, 0, 1)).saved);
  CHECK_THROWS_AS(saver_of(1, "job"), InputError);
  CHECK_THROWS_WITH(saver_of(1, "job"), Contains("generation 2 of this job has written here, this is generation 1"));
  CHECK_NOTHROW(saver_of(1, "another job"));
  CHECK_THAT(new_one->save(snapshot_of(70, 0, 1)).reason, Contains("another job has claimed the folder"));
}

TEST_CASE("checkpoint: a folder that a run made and saved nothing in goes again, unless something else is there",
          "[checkpoint]") {
  const TemporaryFolder parent;
  const fs::path folder = parent / "checkpoints";
  rendezvous::MemoryStore store;
  const auto start = [&] { return std::make_unique<Saver>(options_of(folder, 0, 1), store); };
  start();
  CHECK_FALSE(fs::exists(folder));
  {
    const auto older = start();
    const auto newer = start();  // found the folder
  }
  CHECK(fs::exists(folder / ".generation"));
  start();
  CHECK(fs::exists(folder / ".generation"));
  fs::remove_all(folder);
  {
    const auto saver = start();
    std::ofstream(folder / "metrics.jsonl") << "{}";
  }
  CHECK(fs::exists(folder / ".generation"));
  fs::remove_all(folder);
  CHECK(start()->save(snapshot_of(50, 0, 1)).saved);
  CHECK(latest_step(folder) == 50);
}

TEST_CASE("checkpoint: a rank that does not come is named, and the save is given up everywhere", "[checkpoint]") {
  const TemporaryFolder folder;
  save_steps(folder.path(), 3, {10});
  rendezvous::MemoryStore store;
  const auto late = run_ranks(3, [&](int rank) {
    SaverOptions options = options_of(folder.path(), rank, 3);
    options.timeout = milliseconds(5000);
    Saver saver(options, store);
    return rank == 2 ? SaveResult{} : saver.save(snapshot_of(20, rank, 3));
  });
  CHECK_THAT(late[0].reason, Contains("rank 2 did not come within the time-out"));
  CHECK(late[1].reason == late[0].reason);
  CHECK(latest_step(folder.path()) == 10);
  CHECK(leftovers_in(folder.path()).empty());
}

TEST_CASE("checkpoint: hosts with folders of their own each keep their ranks' part, and resume from the same step",
          "[checkpoint]") {
  const TemporaryFolder first, second;
  const auto folder_of = [&](int rank) { return rank < 2 ? first.path() : second.path(); };
  rendezvous::MemoryStore store;
  {
    const CapturedLog log;
    const auto saved = run_ranks(4, [&](int rank) {
      Saver saver(options_of(folder_of(rank), rank, 4), store);
      return saver.save(snapshot_of(40, rank, 4)).saved && saver.save(snapshot_of(50, rank, 4)).saved;
    });
    CHECK(saved == std::vector<bool>(4, true));
    CHECK_THAT(log.text(), Contains("is not shared between the hosts"));
  }
  CHECK(Checkpoint(second / "step-50").manifest().members == std::vector<int>{2, 3});
  CHECK_THROWS_WITH(Checkpoint(second / "step-50").read_rows("model.embed_tokens.weight", 0, 1),
                    Contains("one host's part"));
  flip_byte(second / "step-50/shard-00003-model-00001-of-00001.safetensors", 1);
  const auto resumed = run_ranks(4, [&](int rank) {
    Agreement ranks(store, "resume", rank, 4, milliseconds(20000));
    const auto found = find_latest(folder_of(rank), ranks);
    return std::pair(found->step(), wrong_elements(*found, rank, 4));
  });
  for (const auto& [step, wrong] : resumed) {
    CHECK(step == 40);
    CHECK(wrong == 0);
  }
}

TEST_CASE("checkpoint: hosts with folders of their own keep a step of all when one host's disk fails at any operation",
          "[checkpoint]") {
  int64_t old_ones = 0;
  for (int64_t operation = 0;; ++operation) {
    const TemporaryFolder first, second;
    const auto folder_of = [&](int rank) { return rank == 0 ? first.path() : second.path(); };
    const auto disk = std::make_shared<FaultyDisk>(operation, Fault::Forever);
    rendezvous::MemoryStore store;
    run_ranks(2, [&](int rank) {
      SaverOptions options = options_of(folder_of(rank), rank, 2);
      options.keep = 1;
      {
        Saver saver(options, store);
        saver.save(snapshot_of(40, rank, 2));
      }
      Saver saver(options, store, rank == 1 ? disk : real_disk());
      return saver.save(snapshot_of(50, rank, 2)).saved;
    });
    if (!disk->has_failed()) break;
    INFO("the disk of rank 1 failed at operation " << operation);
    const auto found = run_ranks(2, [&](int rank) {
      Agreement ranks(store, "resume", rank, 2, milliseconds(20000));
      return find_latest(folder_of(rank), ranks).value().step();
    });
    CHECK(found[0] == found[1]);
    if (found[0] == 40) ++old_ones;
  }
  CHECK(old_ones > 5);
}

TEST_CASE("checkpoint: a rank that does not come to a look at what is there is lost, and nothing is damaged",
          "[checkpoint]") {
  const TemporaryFolder folder;
  save_steps(folder.path(), 2, {10});
  rendezvous::MemoryStore store;
  const auto look = [&](int rank) {
    Agreement ranks(store, "resume", rank, 2, milliseconds(100));
    return rank == 1 || find_latest(folder.path(), ranks).has_value();
  };
  CHECK_THROWS_AS(run_ranks(2, look), PeerError);
  rendezvous::MemoryStore another;
  CHECK_THROWS_WITH(run_ranks(2,
                              [&](int rank) {
                                SaverOptions options = options_of(folder.path(), rank, 2);
                                options.timeout = milliseconds(100);
                                if (rank == 0) Saver(options, another);
                                return rank;
                              }),
                    "checkpoint.dir: rank 1 did not come within 100 ms; see its log");
  CHECK(latest_step(folder.path()) == 10);
}

TEST_CASE("checkpoint: a folder that cannot be written is refused at the start, on every rank", "[checkpoint]") {
  const TemporaryFolder folder;
  write_file_atomically(folder / "file", "");
  CHECK_THROWS_AS(check_writable(folder / "file/below"), InputError);
  CHECK_THROWS_WITH(check_writable(folder / "file/below"),
                    Contains("checkpoint.dir: ") && Contains("cannot be written: Not a directory"));
  rendezvous::MemoryStore store;
  const auto errors = run_ranks(2, [&](int rank) -> std::string {
    try {
      Saver saver(options_of(folder / "file/below", rank, 2), store);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  });
  CHECK_THAT(errors[0], Contains("cannot be written"));
  CHECK(errors[1] == errors[0]);
}

TEST_CASE("checkpoint: the log tells of saving, size and speed", "[checkpoint]") {
  const TemporaryFolder folder;
  const CapturedLog log;
  SaveResult saved = save_steps(folder.path(), 1, {50})[0][0];
  saved.bytes = 3 << 20;
  saved.seconds = 0.5;
  log_result(saved);
  log_result({.step = 60, .reason = "rank 1: No space left on device"});
  log_loaded(Checkpoint(folder / "step-50"), 0.25);
  CHECK_THAT(log.text(), Contains("Saving checkpoint step 50") &&
                             Contains("Saved checkpoint " + (folder / "step-50").string() +
                                      " in 0.50 s (3.00 MiB, 6.00 MiB/s)") &&
                             Contains("Checkpoint of step 60 was not saved; training goes on and older checkpoints "
                                      "are as they were: rank 1: No space left on device") &&
                             Contains("Loaded checkpoint from step 50"));
}

}  // namespace trainyard::checkpoint
