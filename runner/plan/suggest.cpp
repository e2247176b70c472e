#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "assemble/model_config.h"
#include "base/text.h"
#include "plan/plan.h"
#include "tensor/memory.h"

namespace trainyard::train {
namespace {

/// A change that takes less memory. `apply` says its switch, "" where the job has it already.
using Change = std::function<std::string(Job&)>;

Change recompute(config::CheckpointingMode mode, const char* name) {
  return [mode, name](Job& job) -> std::string {
    using config::CheckpointingMode;
    const CheckpointingMode now = job.config().activation_checkpointing.mode;
    if (now == mode || now == CheckpointingMode::Full) return "";
    job.config().activation_checkpointing.mode = mode;
    return fmt::format("--activation_checkpointing.mode {}", name);
  };
}

std::string shard_fully(Job& job) {
  config::Parallel& parallel = job.config().parallel;
  if (parallel.strategy == config::Strategy::FullShard || job.placement.world == 1) return "";
  parallel.strategy = config::Strategy::FullShard;
  parallel.shard = -1;
  parallel.replicate = -1;
  return "--parallel.strategy full_shard";
}

/// It is not for a CPU, whose kernels may convert to float32 and back, which takes more.
std::string use_half(Job& job) {
  if (job.config().parallel.param_dtype != config::Precision::Float32 || job.hardware.is_cpu) return "";
  job.config().parallel.param_dtype = config::Precision::BFloat16;
  return "--parallel.param_dtype bf16";
}

/// The same global batch in 2^times as many portions.
Change halve_batch(int times) {
  return [times](Job& job) -> std::string {
    for (int i = 0; i < times; ++i) {
      if (job.batch.rows % 2 != 0) return "";
      job.batch.rows /= 2;
      job.config().training.accumulation_steps *= 2;
    }
    job.config().training.batch_size = job.batch.rows;
    return fmt::format("--training.batch_size {} --training.accumulation_steps {}", job.batch.rows,
                       job.config().training.accumulation_steps);
  };
}

/// The job with all of `changes`, and their switches; none where they change nothing.
std::optional<std::pair<Job, std::string>> changed(const Job& job, const std::vector<Change>& changes) {
  std::pair<Job, std::string> result{job, ""};
  for (const Change& change : changes)
    if (const std::string said = change(result.first); !said.empty())
      result.second += (result.second.empty() ? "" : " ") + said;
  if (result.second.empty()) return std::nullopt;
  return result;
}

std::optional<Suggestion> tried(const Job& job, const std::string& switches, uint64_t bytes) {
  const Simulation seen = simulate(job);
  const uint64_t needed = seen.device_bytes() + job.hardware.fixed_memory;
  if (needed > bytes) return std::nullopt;
  return Suggestion{switches, needed, seen.seconds};
}

/// The fewest ranks, in powers of two of those there are, that fit with everything else done.
std::optional<Suggestion> with_more_ranks(const Job& job, const std::vector<Change>& changes, uint64_t bytes) {
  constexpr int kMostRanks = 1 << 16;
  for (int world = job.placement.world * 2; world <= kMostRanks; world *= 2) {
    Job larger = job;
    larger.placement.world = world;
    larger.config().parallel.replicate = -1;  // the rest, whatever it was for fewer ranks
    const auto made = changed(larger, changes);
    const std::string switches = fmt::format("{} ranks{}{}", world, made ? ", " : "", made ? made->second : "");
    if (const auto fits = tried(made ? made->first : larger, switches, bytes)) return fits;
  }
  return std::nullopt;
}

/// The ways from the least change to the most.
std::vector<std::vector<Change>> ways_of(const Job& job) {
  const Change selective = recompute(config::CheckpointingMode::Selective, "selective");
  const Change full = recompute(config::CheckpointingMode::Full, "full");
  std::vector<std::vector<Change>> ways{
      {selective},      {shard_fully},       {full},           {use_half},
      {halve_batch(1)}, {shard_fully, full}, {full, use_half}, {shard_fully, full, use_half}};
  for (int times = 1; job.batch.rows > 0 && job.batch.rows % (int64_t{1} << times) == 0; ++times)
    ways.push_back({shard_fully, full, use_half, halve_batch(times)});
  return ways;
}

}  // namespace

std::vector<Suggestion> suggest(const Job& job, uint64_t bytes, size_t most) {
  const auto ways = ways_of(job);
  std::vector<Suggestion> found;
  for (const auto& way : ways) {
    if (found.size() == most) return found;
    const auto made = changed(job, way);
    if (!made) continue;
    const bool is_more_than_enough = std::ranges::any_of(
        found, [&](const Suggestion& each) { return made->second.find(each.switches) != std::string::npos; });
    if (is_more_than_enough) continue;
    if (const auto fits = tried(made->first, made->second, bytes)) found.push_back(*fits);
    if (!found.empty() && way.size() > 3) return found;  // what comes after is more of the same
  }
  if (found.empty())
    if (const auto fits = with_more_ranks(job, ways.back(), bytes)) found.push_back(*fits);
  return found;
}

std::string out_of_memory_text(const config::Loaded& loaded, const Placement& placement) {
  const uint64_t held = resident_bytes();
  trim_host_cache();  // what the run gave back is kept for the next, which is not coming
  const models::ModelConfig model = model_config_of(loaded.config.model);
  const BatchSize batch = resolve(loaded, ranks_of(placement), {}).batch;
  Job job{loaded, model, placement, {}, batch_shape_of(batch, loaded.config.data, model)};
  job.hardware = {.name = "cpu",
                  .is_cpu = true,
                  .float8_flops = 1,
                  .half_flops = 1,
                  .float_flops = 1,
                  .memory_bandwidth = 1,
                  .link_bandwidth = 1};
  const uint64_t needed = simulate(job).at_peak.total();
  // What was refused is what the run needs; less than that by a tenth is the least that is worth a new start. Of a
  // limit as much as the process had before the run is not for tensors.
  const uint64_t limit = memory_limit() / static_cast<uint64_t>(placement.ranks_per_node);
  const auto suggestions = suggest(job, std::min(needed - needed / 10, limit - std::min(limit / 8, held)), 1);
  return fmt::format("out of memory with {} resident: the run holds {} of tensors a rank at its peak; {}",
                     human_bytes(held), human_bytes(needed),
                     suggestions.empty() ? std::string("use more ranks, or a smaller training.sequence_length")
                                         : fmt::format("{} makes that {}", suggestions.front().switches,
                                                       human_bytes(suggestions.front().bytes)));
}

}  // namespace trainyard::train
