#include "plan/plan.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "support/support.h"

namespace trainyard::train {
namespace {

Job job_of(const char* preset, Placement placement, const char* device = "h100") {
  Job job{{}, models::preset(preset), placement, accelerator(device), {2, 8192}};
  job.config().parallel.param_dtype = config::Precision::BFloat16;
  return job;
}

}  // namespace

TEST_CASE("plan: what does not fit is told with the least change that does, and each suggestion is true") {
  Job job = job_of("llama3.1-8b", {8, 8});
  job.hardware.memory = 90'000'000'000;
  const nlohmann::json plan = plan_json(job);
  REQUIRE_FALSE(plan["fits"].get<bool>());
  const auto suggestions = suggest(job, job.hardware.memory);
  REQUIRE_FALSE(suggestions.empty());
  CHECK(suggestions.front().switches == "--activation_checkpointing.mode selective");
  Job changed = job;
  changed.config().activation_checkpointing.mode = config::CheckpointingMode::Selective;
  CHECK(simulate(changed).device_bytes() + job.hardware.fixed_memory == suggestions.front().bytes);
  for (const Suggestion& each : suggestions) CHECK(each.bytes <= job.hardware.memory);
  CHECK(plan["suggestions"][0]["switches"] == suggestions.front().switches);
  CHECK_THAT(plan_text(job), Catch::Contains("does not fit") && Catch::Contains("would fit") &&
                                 Catch::Contains("--activation_checkpointing.mode selective"));
}

TEST_CASE("plan: a global batch size for these ranks hinders no suggestion of more") {
  Job job = job_of("llama3.1-70b", {8, 8});
  job.batch.rows = 1;
  const auto without = suggest(job, job.hardware.memory);
  job.config().training.global_batch_size = 8;  // which 16 ranks with a row each do not divide
  const auto with = suggest(job, job.hardware.memory);
  REQUIRE(with.size() == 1);
  CHECK(with.front().switches == without.front().switches);
  CHECK(with.front().bytes == without.front().bytes);
}

TEST_CASE("plan: where no switch is enough, it says how many ranks are") {
  Job job = job_of("llama3.1-70b", {8, 8});
  job.batch.rows = 1;
  const auto suggestions = suggest(job, job.hardware.memory);
  REQUIRE(suggestions.size() == 1);
  CHECK_THAT(suggestions.front().switches, Catch::StartsWith("32 ranks"));
}

TEST_CASE("plan: memory of a rank adds up, and shards shrink with the ranks") {
  const nlohmann::json one = plan_json(job_of("llama3.2-1b", {1, 1})), eight = plan_json(job_of("llama3.2-1b", {8, 8}));
  CHECK(one["parameters"] == 1'235'814'400);
  CHECK(one["memory"]["at_peak"]["optimizer"] == 8 * 1'235'814'400LL);
  CHECK(eight["memory"]["at_peak"]["optimizer"].get<double>() == Approx(1'235'814'400).epsilon(0.01));
  int64_t sum = 0;
  for (const auto& [kind, bytes] : eight["memory"]["at_peak"].items()) sum += bytes.get<int64_t>();
  CHECK(eight["memory"]["peak_bytes"] == sum);
  CHECK(eight["mfu"].get<double>() > 0.2);
  CHECK(eight["mfu"].get<double>() < 0.75);  // it counts whole what causal attention computes half of
}

TEST_CASE("plan: a device takes the offloaded activations out of its memory, a CPU does not") {
  Job job = job_of("llama3.2-1b", {1, 1});
  job.config().activation_checkpointing = {config::CheckpointingMode::Full, 1, true};
  const Simulation seen = simulate(job);
  CHECK(seen.most[MemoryKind::Offloaded] >= 16 * 2 * 8192 * 2048 * 2ULL);
  CHECK(seen.device_bytes() + seen.at_peak[MemoryKind::Offloaded] == seen.at_peak.total());
  job.hardware.is_cpu = true;
  const Simulation on_cpu = simulate(job);
  CHECK(on_cpu.device_bytes() == on_cpu.at_peak.total());
}

TEST_CASE("plan: what is offloaded is the host's, and takes the bus's time and the host's") {
  Job job = job_of("llama3.2-1b", {8, 8});
  const Simulation here = simulate(job);
  CHECK(here.host_bytes() == 0);
  job.config().parallel.offload = true;
  const Simulation there = simulate(job);
  using enum MemoryKind;
  CHECK(there.host_bytes() == there.most[Parameters] + there.most[Gradients] + there.most[Optimizer]);
  const double state = 1'235'814'400 / 8.0 * 28;  // bytes that AdamW reads and writes
  CHECK(there.seconds - here.seconds > state / job.hardware.host_bandwidth);
  job.hardware.host_memory = there.host_bytes();
  CHECK_FALSE(memory_warning(job, there));
  --job.hardware.host_memory;
  CHECK_THAT(memory_warning(job, there).value(), Catch::Contains("will offload") && Catch::Contains("the host has"));
}

TEST_CASE("plan: a device needs room for its own peak, which comes before gradients have filled the host") {
  Job job = job_of("llama3.2-1b", {1, 1});
  job.config().parallel.offload = true;
  job.config().activation_checkpointing.mode = config::CheckpointingMode::Full;
  const Simulation seen = simulate(job);
  using enum MemoryKind;
  CHECK(seen.at_peak[Gradients] < seen.most[Gradients] / 2);
  CHECK(seen.device_bytes() > seen.most[Activations]);
}

TEST_CASE("plan: what other processes hold of a device is no room for the run") {
  Job job = job_of("llama3.2-1b", {8, 8});
  const Simulation seen = simulate(job);
  const uint64_t needed = seen.device_bytes() + job.hardware.fixed_memory;
  job.hardware.others_hold = job.hardware.memory - needed;
  CHECK_FALSE(memory_warning(job, seen));
  ++job.hardware.others_hold;
  CHECK_THAT(memory_warning(job, seen).value(), Catch::Contains("as other processes hold"));
}

TEST_CASE("plan: what is more than the whole host has is refused with both sizes, on a device what it would offload") {
  Job job = job_of("llama3.2-1b", {1, 1});
  job.hardware.is_cpu = true;
  const Simulation seen = simulate(job);
  const uint64_t needed = seen.device_bytes() + job.hardware.fixed_memory;
  CHECK_FALSE(memory_refusal(job, seen));  // not known
  job.hardware.machine_memory = needed;
  CHECK_FALSE(memory_refusal(job, seen));
  --job.hardware.machine_memory;
  CHECK_THAT(memory_refusal(job, seen).value(),
             Catch::StartsWith(fmt::format("this run needs {} of memory a rank, and this host has {} for each",
                                           human_bytes(needed), human_bytes(needed - 1))));
  job.hardware.is_cpu = false;
  CHECK_FALSE(memory_refusal(job, seen));
  job.config().parallel.offload = true;
  const Simulation offloads = simulate(job);
  job.hardware.machine_memory = offloads.host_bytes() - 1;
  CHECK(memory_refusal(job, offloads));
}

TEST_CASE("plan: activations leave beside compute, unless the bus is slower than that") {
  Job job = job_of("llama3.2-1b", {1, 1});
  job.config().activation_checkpointing = {config::CheckpointingMode::Full, 1, false};
  const double kept = simulate(job).seconds;
  job.config().activation_checkpointing.offload = true;
  CHECK(simulate(job).seconds < 1.02 * kept);
  job.hardware.bus_bandwidth = 1e9;
  const double copied = 2.0 * 16 * 2 * 8192 * 2048 * 2 / 0.8e9;  // there and back, each layer's input
  CHECK(simulate(job).seconds > copied);
}

TEST_CASE("plan: a run that got no memory is told a switch that needs less") {
  config::Config config;
  config.model.preset = "qwen3-30m";
  config.training.batch_size = 16;
  CHECK_THAT(out_of_memory_text({config, {}, {}}, {1, 1}), Catch::Contains("out of memory with") &&
                                                               Catch::Contains("resident") &&
                                                               Catch::Contains("--activation_checkpointing.mode"));
}

TEST_CASE("plan: under a limit on address space, batches and tables of many MiB are planned for all the same") {
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  constexpr uint64_t kSanitizers = uint64_t{1} << 40;
  if (pages * static_cast<uint64_t>(getpagesize()) > kSanitizers)
    return test::skip("a sanitizer has taken terabytes of addresses already");
  constexpr uint64_t kRoom = uint64_t{4} << 30;
  const rlimit tight{pages * static_cast<uint64_t>(getpagesize()) + kRoom, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_AS, &tight) == 0);
  Job wide = job_of("qwen3-tiny", {1, 1}), many_rows = wide;
  wide.model.hidden_size = 1 << 24, wide.model.head_dim = wide.model.hidden_size / wide.model.heads;
  many_rows.batch = {100'000, 64};
  const Simulation of_wide = simulate(wide), of_many = simulate(many_rows);
  setrlimit(RLIMIT_AS, &before);
  CHECK(of_wide.at_peak.total() > kRoom);
  CHECK(of_many.at_peak.total() > kRoom);
}

TEST_CASE("hardware: an unknown device is answered with the nearest and the list") {
  CHECK_THROWS_WITH(accelerator("h10"), Catch::Contains("did you mean 'h100'?") && Catch::Contains("b200"));
}

TEST_CASE("hardware: a device's own name says whose sheet is its") {
  const auto [name, sheet] = GENERATE(table<std::string, std::string>({
      {"NVIDIA H100 80GB HBM3", "h100"},
      {"NVIDIA H100 PCIe", "h100-pcie"},
      {"NVIDIA H100 NVL", "h100-nvl"},
      {"NVIDIA H200", "h200"},
      {"NVIDIA A100-SXM4-80GB", "a100"},
      {"NVIDIA L40S", "l40s"},
      {"NVIDIA H100 80GB HBM3 MIG 1g.10gb", ""},
      {"Tesla T4", ""},
  }));
  CHECK(sheet_of(name) == sheet);
}

TEST_CASE("hardware: the least limit of the control groups around a process counts, of cgroup v1 and v2") {
  const test::TemporaryFolder root;
  const auto write = [&](const char* path, const char* text) {
    std::filesystem::create_directories((root.path() / path).parent_path());
    std::ofstream(root.path() / path) << text << '\n';
  };
  constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();
  CHECK(control_group_limit(root.path(), "0::/jobs/a\n") == kNone);
  write("memory.max", "9000");
  write("jobs/memory.max", "5000");
  write("jobs/a/memory.max", "max");
  CHECK(control_group_limit(root.path(), "0::/jobs/a\n") == 5000);
  CHECK(control_group_limit(root.path(), "0::/\n") == 9000);
  CHECK(control_group_limit(root.path(), "0::/of/the/host\n") == 9000);
  write("memory/memory.limit_in_bytes", "9223372036854771712");
  write("memory/jobs/a/memory.limit_in_bytes", "4000");
  CHECK(control_group_limit(root.path(), "9:cpu:/jobs\n4:hugetlb,memory:/jobs/a\n") == 4000);
  CHECK(control_group_limit(root.path(), "4:memory:/jobs\n") == 9223372036854771712ULL);
  CHECK(control_group_limit(root.path(), "no such line\n") == kNone);
}

}  // namespace trainyard::train
