// What a pod is that a machine is not: its files go with it, and its /dev/shm is small.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <filesystem>

#include "small_job.h"

namespace trainyard::test {
namespace {

namespace fs = std::filesystem;
using Catch::Contains;
using std::chrono::seconds;

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

/// A folder in memory, removed at the end of the scope.
class MemoryFolder {
 public:
  MemoryFolder() : path_("/dev/shm/" + own_.path().filename().string()) { fs::create_directory(path_); }
  ~MemoryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  MemoryFolder(const MemoryFolder&) = delete;
  MemoryFolder& operator=(const MemoryFolder&) = delete;
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  TemporaryFolder own_;  // its name is nobody else's
  fs::path path_;
};

const std::map<std::string, std::string> kPod{{"KUBERNETES_SERVICE_HOST", "10.96.0.1"}};

/// `words` where /dev/shm has `size`, for mount(8).
Words with_shared_memory(const std::string& size, const Words& words) {
  return Words{"unshare", "--map-root-user",
               "--mount", "bash",
               "-c",      fmt::format("mount -t tmpfs -o size={} shm /dev/shm && exec \"$@\"", size),
               "bash"} +
         words;
}

}  // namespace

TEST_CASE("pod: checkpoints that go with it draw one warning, which elsewhere nobody gets") {
  if (!fs::exists("/dev/shm")) return skip("no /dev/shm");
  const MemoryFolder memory;
  const SmallJob job;
  const auto warnings = [&](Words more, const std::map<std::string, std::string>& environment) {
    const Ended ended =
        run({on_ranks(2, job.train(1, Words{"--checkpoint.dir", memory.path()} + more)), environment, seconds(60)});
    INFO(ended.all());
    CHECK(ended.code == 0);
    return count_of(ended.all(),
                    fmt::format("checkpoint.dir: {} is in memory (tmpfs), which goes with this pod", memory.path()));
  };
  CHECK(warnings({}, kPod) == 1);
  CHECK(warnings({"--checkpoint.enabled", "false"}, kPod) == 0);
  CHECK(warnings({}, {}) == 0);
}

TEST_CASE("pod: a /dev/shm without room is said, and training goes on without it") {
  if (run({with_shared_memory("64m", {"true"})}).code != 0)
    return skip("this user may mount nothing, not even unshared");
  // 4 KiB: not even for a page beside the folder's own. 64m: what containers have, and enough.
  const auto [size, is_enough] = GENERATE(table<std::string, bool>({{"4k", false}, {"1m", false}, {"64m", true}}));
  CAPTURE(size);
  const SmallJob in_memory, job;
  REQUIRE(run({on_ranks(3, in_memory.train(3)), {}, seconds(60)}).code == 0);
  const Ended ended = run({with_shared_memory(size, on_ranks(3, job.train(3))), {}, seconds(60)});
  INFO(ended.all());
  CHECK(ended.code == 0);
  CHECK((count_of(ended.all(), "TCP instead") == 0) == is_enough);
  CHECK(job.losses() == in_memory.losses());
}

TEST_CASE("pod: under mpirun a small /dev/shm ends with a message at the most, by no signal") {
  if (run({{"mpirun", "--version"}}).code != 0) return skip("no mpirun");
  if (run({with_shared_memory("64m", {"true"})}).code != 0)
    return skip("this user may mount nothing, not even unshared");
  const std::string size = GENERATE("4k", "1m", "64m");
  CAPTURE(size);
  const SmallJob job;
  const Words words = Words{"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "3"} + trainyard(job.train(3));
  const Ended ended = run({with_shared_memory(size, words), {}, seconds(120)});
  INFO(ended.all());
  CHECK(ended.code == 0);
  CHECK_THAT(ended.all(), !Contains("Bus error"));
}

}  // namespace trainyard::test
