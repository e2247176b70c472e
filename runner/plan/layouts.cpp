#include "plan/layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "config/check.h"
#include "config/details.h"
#include "config/schema.h"
#include "config/value.h"
#include "metrics/table.h"
#include "models/family.h"

namespace trainyard::train {
namespace {

using config::CheckpointingMode;
using config::Strategy;

constexpr int64_t kLeastPieceTokens = 128;  // shorter pieces of a row have products that are too narrow
constexpr int64_t kMostContext = 64;

constexpr std::array kModes{CheckpointingMode::None, CheckpointingMode::Selective, CheckpointingMode::Full};

/// Ranks that share rows, by tokens and by layers.
struct RowSplit {
  int64_t context = 1, tensor = 1;
  [[nodiscard]] int64_t ranks() const { return context * tensor; }
};

/// What the search decides.
struct Choice {
  Strategy strategy;
  RowSplit split;
  int64_t rows;
  CheckpointingMode mode;
  bool syncs;  ///< reduces gradients at each micro-batch, so that whole ones are not kept between them
};

/// Divisors of the ranks whose pieces of a row are not too short, and what was given.
std::vector<int64_t> contexts_of(const Job& job) {
  const int64_t given = job.config().parallel.context;
  std::vector<int64_t> contexts{1};
  if (models::learns_from(job.model) == models::LearnsFrom::Text)
    for (int64_t context = 2; context <= std::min<int64_t>(job.placement.world, kMostContext); ++context)
      if (job.placement.world % context == 0 && job.batch.tokens / (2 * context) >= kLeastPieceTokens)
        contexts.push_back(context);
  if (std::ranges::count(contexts, given) == 0) contexts.push_back(given);
  return contexts;
}

/// Divisors of the heads that lie in a node, where layers exchange fastest, and what was given.
std::vector<int64_t> tensors_of(const Job& job) {
  const int64_t given = job.config().parallel.tensor;
  std::vector<int64_t> tensors{1};
  for (int64_t tensor = 2; tensor <= job.placement.ranks_per_node; tensor *= 2)
    if (job.placement.ranks_per_node % tensor == 0 && job.model.heads % tensor == 0 &&
        !models::family_of(job.model).placements.empty())
      tensors.push_back(tensor);
  if (std::ranges::count(tensors, given) == 0) tensors.push_back(given);
  return tensors;
}

std::vector<RowSplit> splits_of(const Job& job) {
  std::vector<RowSplit> splits;
  for (const int64_t context : contexts_of(job))
    for (const int64_t tensor : tensors_of(job))
      if (job.placement.world % (context * tensor) == 0) splits.push_back({context, tensor});
  return splits;
}

std::vector<Strategy> strategies_of(const Job& job) {
  const config::Parallel& given = job.config().parallel;
  const bool is_mesh_given = given.shard != -1 || given.replicate != -1 || !given.reshard_after_forward.empty();
  if (job.placement.world == 1 || is_mesh_given) return {given.strategy};
  std::vector<Strategy> strategies{Strategy::FullShard, Strategy::ShardGradOp, Strategy::NoShard};
  if (ranks_of(job.placement).a_node > 0 && job.placement.ranks_per_node < job.placement.world)
    strategies.push_back(Strategy::HybridShard);
  return strategies;
}

/// Rows of a step over all ranks.
int64_t global_rows(const Job& job, const RunSpec& spec) {
  return job.batch.rows * spec.batch.accumulation_steps * spec.sharding.mesh.data_ranks();
}

/// The job laid out so; none where the global batch would be another.
std::optional<Job> laid_out(const Job& job, const Choice& choice, int64_t rows_of_step) {
  Job other = job;
  config::Config& config = other.config();
  config.parallel.strategy = choice.strategy;
  config.parallel.context = choice.split.context;
  config.parallel.tensor = choice.split.tensor;
  config.activation_checkpointing.mode = choice.mode;
  const int64_t at_once = choice.rows * (job.placement.world / choice.split.ranks());
  if (rows_of_step % at_once != 0) return std::nullopt;
  config.training.batch_size = other.batch.rows = choice.rows;
  config.training.accumulation_steps = rows_of_step / at_once;
  const bool accumulates = config.training.accumulation_steps > 1;
  if (choice.syncs && (!accumulates || config.training.sync_every_micro_batch)) return std::nullopt;  // tried without
  if (choice.syncs) config.training.sync_every_micro_batch = true;
  return other;
}

/// The keys in which the two differ, as flags. Micro-batches follow from a global batch size by themselves.
std::string switches_of(const Job& before, const Job& after) {
  std::string switches;
  for (const config::Key& key : config::keys()) {
    const config::Value value = key.get(after.config());
    const bool follows =
        after.config().training.global_batch_size > 0 && key.full_name() == "training.accumulation_steps";
    if (follows || value == key.get(before.config())) continue;
    switches += fmt::format("{}--{} {}", switches.empty() ? "" : " ", key.full_name(), config::format_value(value));
  }
  return switches;
}

std::string why(const Simulation& seen) {
  const double again = seen.computed_flops / std::max(seen.model_flops, 1.0) - 1;
  return fmt::format("{:.0f} % of the step waits for ranks{}", 100 * seen.waited_seconds / seen.seconds,
                     again > 0.01 ? fmt::format(", {:.0f} % is computed again", 100 * again) : "");
}

/// Whether the parameters alone are too many: their float32 shards, and all of them gathered where they stay so between
/// forward and backward. No need to simulate.
bool cannot_fit(const Job& job, const RunSpec& spec) {
  const shard::Policy& policy = spec.sharding.policy;
  if (job.hardware.memory == 0 || policy.offload) return false;
  const double parameters =
      static_cast<double>(models::parameter_count(job.model)) / static_cast<double>(spec.sharding.mesh.tensor);
  const int shards = spec.sharding.mesh.of(shard::Dimension::Shard);
  const bool stay_gathered = shards > 1 && policy.reshard == shard::Reshard::AfterBackward;
  const double gathered = policy.float8_all_gather ? 1 : 2;  // no type of parameters has fewer bytes
  const double least = parameters * (sizeof(float) / static_cast<double>(shards) + (stay_gathered ? gathered : 0));
  return least > static_cast<double>(job.hardware.memory);
}

/// A layout that was simulated, once.
struct Tried {
  Layout layout;
  bool fits = false;
  bool is_noted = false;
};

class Search {
 public:
  /// Throws InputError where the job as it is given is none.
  explicit Search(const Job& job)
      : job_(job),
        rows_of_step_(global_rows(job, resolve(job.loaded, ranks_of(job.placement), {}))),
        is_consistent_(!contradiction_in(job.loaded)) {
    note(tried_.emplace("", simulated(job_, "as given")).first->second);
  }

  Layouts found(size_t most) {
    for (const RowSplit& split : splits_of(job_))
      for (const Strategy strategy : strategies_of(job_)) {
        // What is split in both ways is large: there is no use in keeping copies of it.
        const bool is_large = split.context > 1 && split.tensor > 1;
        if (!is_large || strategy == Strategy::FullShard || strategy == job_.config().parallel.strategy)
          try_rows(strategy, split);
      }
    std::ranges::stable_sort(layouts_.best, {}, &Layout::seconds);
    if (layouts_.best.size() > most) layouts_.best.resize(most);
    return std::move(layouts_);
  }

 private:
  /// It tries as many rows at once as fit without recomputation, and each larger number with the least recomputation.
  /// Ranks that share rows can take those of all of them at once.
  void try_rows(Strategy strategy, const RowSplit& split) {
    for (int64_t rows = job_.batch.rows * split.ranks(); rows >= 1; rows /= 2) {
      const auto least = least_recomputation(strategy, split, rows);
      if (least == CheckpointingMode::None || rows % 2 != 0) return;
    }
  }

  /// The first mode that fits; none: none does, which is known at once from the layout that takes least.
  std::optional<CheckpointingMode> least_recomputation(Strategy strategy, const RowSplit& split, int64_t rows) {
    const Choice without_syncs{strategy, split, rows, CheckpointingMode::Full, false};
    const Choice with_syncs{strategy, split, rows, CheckpointingMode::Full, true};
    const Tried& least = laid_out(job_, with_syncs, rows_of_step_) ? tried(with_syncs) : tried(without_syncs);
    if (!least.fits) return std::nullopt;
    for (const bool syncs : {false, true})
      for (const CheckpointingMode mode : kModes)
        if (note(tried({strategy, split, rows, mode, syncs}))) return mode;
    return std::nullopt;
  }

  Tried& tried(const Choice& choice) {
    const auto other = laid_out(job_, choice, rows_of_step_);
    if (!other) return none_;
    const std::string switches = switches_of(job_, *other);
    const auto known = tried_.find(switches);
    if (known != tried_.end()) return known->second;
    return tried_.emplace(switches, simulated_if_valid(*other, switches)).first->second;
  }

  Tried simulated_if_valid(const Job& job, const std::string& switches) {
    if (is_consistent_ && contradiction_in(job.loaded)) return {};
    try {
      if (cannot_fit(job, resolve(job.loaded, ranks_of(job.placement), {}))) return {};
      return simulated(job, switches);
    } catch (const InputError&) {
      return {};  // a mesh that these ranks do not make, or heads that they do not divide
    }
  }

  Tried simulated(const Job& job, const std::string& switches) {
    ++layouts_.tried;
    const Simulation seen = simulate(job);
    const uint64_t bytes = seen.device_bytes() + job.hardware.fixed_memory;
    if (layouts_.least_bytes == 0 || bytes < layouts_.least_bytes)
      layouts_.least_bytes = bytes, layouts_.least = switches;
    return {{seen.spec.sharding.mesh, switches, bytes, seen.seconds, why(seen)},
            job.hardware.memory == 0 || bytes <= job.hardware.memory};
  }

  /// Whether it fits: then it is one of those to choose from.
  bool note(Tried& one) {
    if (one.fits && !one.is_noted) layouts_.best.push_back(one.layout);
    one.is_noted = true;
    return one.fits;
  }

  /// Whether a run would refuse keys that mean nothing beside others.
  static bool contradiction_in(const config::Loaded& loaded) {
    try {
      config::check_for_plan(loaded);
      config::check_details(loaded);
      return false;
    } catch (const InputError&) {
      return true;
    }
  }

  const Job& job_;
  const int64_t rows_of_step_;
  const bool is_consistent_;  ///< a plan need not say where its data is, without which other keys mean nothing
  Layouts layouts_;
  Tried none_;  ///< for what is no layout of this job
  std::map<std::string, Tried> tried_;  ///< by their switches; "": as given
};

std::string mesh_text(const MeshSize& mesh) {
  return fmt::format("{} x {} x {} x {}", mesh.replicate, mesh.shard, mesh.context, mesh.tensor);
}

/// The first group of `count` ranks that are `stride` apart, and the nodes that it is on.
std::string place_text(int count, int stride, int ranks_per_node) {
  const int last = (count - 1) * stride, last_node = last / ranks_per_node;
  const std::string ranks = count == 1    ? "rank 0"
                            : stride == 1 ? fmt::format("ranks 0 to {}", last)
                            : count == 2  ? fmt::format("ranks 0 and {}", last)
                                          : fmt::format("ranks 0, {}, … {}", stride, last);
  return fmt::format("{:<22} {}", ranks, last_node == 0 ? "in node 0" : fmt::format("in nodes 0 to {}", last_node));
}

/// The first group of each dimension, and how many there are.
std::string picture(const Job& job, const MeshSize& mesh) {
  const int world = mesh.world(), a_node = job.placement.ranks_per_node;
  const int shards = mesh.of(shard::Dimension::Shard);
  std::string text = fmt::format("{} ranks = replicate {} x shard {} x context {} x tensor {}, {} a node\n", world,
                                 mesh.replicate, mesh.shard, mesh.context, mesh.tensor, a_node);
  const auto line = [&](int size, int stride, const std::string& what) {
    text += fmt::format("  {:<40} {}{}\n", place_text(size, stride, a_node), what,
                        world == size ? std::string() : fmt::format("; {} such groups", world / size));
  };
  if (mesh.tensor > 1)
    line(mesh.tensor, 1, fmt::format("split each layer, {} heads each", job.model.heads / mesh.tensor));
  if (mesh.context > 1)
    line(mesh.context, mesh.tensor,
         fmt::format("have the same rows, each {} of {} tokens", with_thousands(job.batch.tokens / mesh.context),
                     with_thousands(job.batch.tokens)));
  const std::string of_what = mesh.tensor > 1 ? fmt::format("their part, 1/{}, of ", mesh.tensor) : "";
  if (shards > 1)
    line(shards, mesh.tensor, fmt::format("split {}every parameter, each 1/{}", of_what, shards * mesh.tensor));
  else
    line(world, 1, fmt::format("each have {}all parameters", of_what));
  return text;
}

}  // namespace

Layouts best_layouts(const Job& job, size_t most) {
  return Search(job).found(most);
}

std::string layouts_text(const Job& job) {
  const Layouts layouts = best_layouts(job);
  if (layouts.best.empty())
    return fmt::format(
        "none of the layouts tried ({}) fits {}; the least, {}, takes {}: use more ranks, or a shorter sequence\n",
        layouts.tried, human_bytes(job.hardware.memory), layouts.least, human_bytes(layouts.least_bytes));
  std::vector<std::vector<std::string>> rows;
  std::string switches;
  int number = 0;
  for (const Layout& layout : layouts.best) {
    rows.push_back({fmt::format("{}. {}", ++number, mesh_text(layout.mesh)), human_bytes(layout.bytes),
                    fmt::format("{:.1f}", layout.seconds * 1e3), layout.why});
    switches += fmt::format("{}. {}\n", number, layout.switches);
  }
  return metrics::format_columns({"replicate x shard x context x tensor", "memory a rank", "ms a step", "why"}, rows) +
         "\n" + switches + "\n" + picture(job, layouts.best.front().mesh) +
         fmt::format("{} layouts were tried, with the same global batch.\n", layouts.tried);
}

}  // namespace trainyard::train
