#include "metrics/metrics_file.h"

#include <sys/resource.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "support/support.h"

namespace trainyard::metrics {
namespace {

StepRecord record(int64_t step) {
  return {.step = step, .loss = 1.0 / static_cast<double>(step), .mfu = 0.25};
}

std::vector<int64_t> steps_in(const std::filesystem::path& path) {
  std::vector<int64_t> steps;
  for (const std::string& line : split(read_file(path), '\n'))
    if (!line.empty()) steps.push_back(step_of_json_line(line).value_or(-1));
  return steps;
}

void write_steps(const std::filesystem::path& folder, int64_t last) {
  MetricsFile file(folder, 0);
  for (int64_t step = 1; step <= last; ++step) file.append(record(step));
}

TEST_CASE("a line of metrics.jsonl has the promised keys in order and every digit", "[metrics]") {
  const StepRecord full{.step = 3,
                        .loss = 0.1 + 0.2,
                        .grad_norm = 1e-300,
                        .lr = 3e-4,
                        .tokens = 1 << 20,
                        .tokens_per_second = 1.0 / 3,
                        .samples_per_second = 9.5,
                        .mfu = 2.0 / 3,
                        .memory_bytes = UINT64_MAX,
                        .time = 1763721600.125};
  const std::string line = to_json_line(full);
  const auto parsed = nlohmann::ordered_json::parse(line);
  std::vector<std::string> names;
  for (const auto& [name, value] : parsed.items()) names.push_back(name);
  CHECK(names == std::vector<std::string>{"step", "loss", "grad_norm", "lr", "tokens", "tokens_per_second",
                                          "samples_per_second", "mfu", "memory_bytes", "data_wait_ms", "compute_ms",
                                          "communication_wait_ms", "optimizer_ms", "checkpoint_ms", "time"});
  CHECK(parsed["loss"].get<double>() == 0.1 + 0.2);
  CHECK(parsed["grad_norm"].get<double>() == 1e-300);
  CHECK(parsed["tokens_per_second"].get<double>() == 1.0 / 3);
  CHECK(parsed["memory_bytes"].get<uint64_t>() == UINT64_MAX);
  CHECK(parsed["time"].get<double>() == 1763721600.125);
  CHECK(nlohmann::json::parse(to_json_line({.step = 1}))["mfu"].is_null());
}

TEST_CASE("a skipped step has no gradient norm: null in metrics.jsonl, absent among the scalars", "[metrics]") {
  const StepRecord record{.step = 1, .loss_scale = 65536, .skipped = true};
  const auto skipped = nlohmann::json::parse(to_json_line(record));
  CHECK(skipped["grad_norm"].is_null());
  CHECK(skipped["loss_scale"] == 65536);
  CHECK(skipped["skipped"] == true);
  const auto is_norm = [](const auto& scalar) { return scalar.first == "grad_norm"; };
  CHECK(std::ranges::none_of(scalars_of(record), is_norm));
  CHECK(std::ranges::any_of(scalars_of({.step = 2, .grad_norm = 1.5}), is_norm));
}

TEST_CASE("each step is in the file as soon as append has returned", "[metrics]") {
  const test::TemporaryFolder folder;
  MetricsFile file(folder / "new" / "deep", 0);
  file.append(record(1));
  CHECK(steps_in(file.path()) == std::vector<int64_t>{1});
}

TEST_CASE("a resumed run cuts the file back to its step and goes on", "[metrics]") {
  const test::TemporaryFolder folder;
  write_steps(folder.path(), 5);
  MetricsFile file(folder.path(), 3);
  file.append(record(4));
  CHECK(steps_in(file.path()) == std::vector<int64_t>{1, 2, 3, 4});
}

TEST_CASE("a run from the start begins an empty file and keeps those of the runs before it", "[metrics]") {
  const test::TemporaryFolder folder;
  write_steps(folder.path(), 3);
  write_steps(folder.path(), 2);
  const MetricsFile file(folder.path(), 0);
  CHECK(steps_in(file.path()).empty());
  CHECK(steps_in(folder / "metrics.jsonl.1") == std::vector<int64_t>{1, 2, 3});
  CHECK(steps_in(folder / "metrics.jsonl.2") == std::vector<int64_t>{1, 2});
}

TEST_CASE("the torn last line of a killed run is cut off", "[metrics]") {
  const test::TemporaryFolder folder;
  write_steps(folder.path(), 2);
  const char* const torn = GENERATE("{\"step\":3,\"lo", "{\"step\":3}", "x");
  std::ofstream(folder / "metrics.jsonl", std::ios::app) << torn;
  MetricsFile file(folder.path(), 10);
  file.append(record(3));
  CHECK(steps_in(file.path()) == std::vector<int64_t>{1, 2, 3});
}

TEST_CASE("a folder that cannot be made is an input error that names it", "[metrics]") {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "file") << "x";
  CHECK_THROWS_MATCHES(MetricsFile(folder / "file" / "metrics", 0), InputError,
                       Catch::Message("metrics.dir: " + (folder / "file" / "metrics").string() + ": Not a directory"));
}

/// Lets files of this process grow to `bytes` until the end of the scope: a full disk, as write() sees it.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST_CASE("a full disk loses lines but neither the run nor the lines around them", "[metrics]") {
  const test::TemporaryFolder folder;
  MetricsFile file(folder.path(), 0);
  file.append(record(1));
  {
    const FileSizeLimit full(std::filesystem::file_size(file.path()) + 20);
    file.append(record(2));
    file.append(record(3));
    CHECK_THAT(file.error(), Catch::Contains("metrics.jsonl: steps from 2 on are missing: "));
  }
  file.append(record(4));
  CHECK(file.error().empty());
  CHECK(steps_in(file.path()) == std::vector<int64_t>{1, 4});
}

}  // namespace
}  // namespace trainyard::metrics
