#include "train/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "train/environment.h"
#include "train/setup.h"

namespace trainyard::train {
namespace {

std::string counted(int64_t value, const char* unit) {
  return with_thousands(value) + " " + unit;
}

/// Bytes that a rank holds for good: parameters, and of those that are trained gradients and AdamW's two moments,
/// float32 each.
uint64_t state_bytes(const shard::Engine& engine) {
  int64_t elements = 0;
  for (const auto& group : engine.groups())
    elements += group->layout().shard_elements + 3 * group->gradient_layout().shard_elements;
  return static_cast<uint64_t>(elements) * sizeof(float);
}

/// Bytes of the unsharded parameters that are there at once: the root's and those of two blocks, and the second's
/// gather buffer.
uint64_t gathered_bytes(const shard::Engine& engine, DType dtype) {
  if (engine.mesh().shard().world() == 1) return 0;
  uint64_t block = 0;
  for (const auto& group : engine.groups())
    block = std::max<uint64_t>(block, static_cast<uint64_t>(group->layout().whole_elements));
  const auto root = static_cast<uint64_t>(engine.groups().back()->layout().whole_elements);
  return (root + 3 * block) * size_of(dtype);
}

std::string mesh_text(const shard::Mesh& mesh) {
  const int world = mesh.world().world(), copies = mesh.replicate().world();
  if (world == 1) return "1 rank";
  if (copies == world) return fmt::format("{} ranks, each parameter replicated", world);
  return fmt::format("{} ranks, each parameter split over {}{}", world, mesh.shard().world(),
                     copies > 1 ? fmt::format(", {} copies", copies) : "");
}

std::string groups_text(const shard::Engine& engine) {
  const auto& groups = engine.groups();
  const std::string& first = groups.front()->label();
  if (groups.size() == 1) return "1: the whole model";
  const std::string& last = groups[groups.size() - 2]->label();
  return fmt::format("{}: {}{}, and the rest", groups.size(), first, first == last ? "" : " … " + last);
}

/// Trained parameters alone have a gradient and moments.
int64_t frozen_count(const shard::Engine& engine) {
  int64_t count = 0;
  for (const shard::ParameterShard& shard : engine.shards())
    if (shard.parameter->is_frozen()) count += shard.parameter->count();
  return count;
}

}  // namespace

std::vector<metrics::TableRow> plan_rows(const config::Config& config, const models::ModelConfig& model,
                                         const shard::Engine& engine, const data::Loader& loader, int64_t total_steps) {
  const int64_t tokens_per_step = loader.sequences_per_step() * loader.sequence_length();
  const DType dtype = dtype_of(config.parallel.param_dtype);
  std::vector<metrics::TableRow> rows = environment_rows();
  rows.insert(
      rows.end(),
      {
          {"model", fmt::format("{}, {} layers, hidden {}, {}", model.family, model.layers, model.hidden_size,
                                counted(models::parameter_count(model), "parameters"))},
          {"ranks", mesh_text(engine.mesh())},
          {"sharding groups", groups_text(engine)},
          {"memory a rank", fmt::format("{} of state, at most {} of gathered parameters, and activations",
                                        human_bytes(state_bytes(engine)), human_bytes(gathered_bytes(engine, dtype)))},
          {"tokens",
           fmt::format("{} a step, {} in {} steps ({:.2f} passes over the data)", with_thousands(tokens_per_step),
                       with_thousands(tokens_per_step * total_steps), with_thousands(total_steps),
                       static_cast<double>(total_steps * loader.sequences_per_step()) /
                           static_cast<double>(loader.sequences_per_epoch()))},
          {"metrics", config.metrics.dir + "/metrics.jsonl"},
      });
  if (const int64_t frozen = frozen_count(engine); frozen > 0)
    rows.push_back({"frozen", counted(frozen, "parameters")});
  if (config.parallel.offload)
    rows.push_back({"offload", "nothing to do: on a CPU shards and optimizer state are in host memory"});
  if (config.checkpoint.enabled) rows.push_back({"checkpoints", config.checkpoint.dir});
  return rows;
}

}  // namespace trainyard::train
