#include "train/inspect.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace trainyard::train {
namespace {

Shape local_shape(const shard::Piece& piece) {
  Shape shape = piece.parameter->shape();
  shape[0] = piece.local.count;
  return shape;
}

std::string group_text(const shard::Group& group, const shard::Mesh& mesh) {
  const bool is_split = mesh.shard().world() > 1;
  std::string text =
      fmt::format("group {}: {} parameters\n", group.label(), with_thousands(group.layout().whole_elements));
  for (const shard::Piece& piece : group.layout().pieces) {
    text += fmt::format("  {:<48} {:>16}  local {:>16}  rows {}..{}  {}\n", piece.parameter->name(),
                        to_string(piece.parameter->shape()), to_string(local_shape(piece)), piece.local.begin,
                        piece.local.begin + piece.local.count, is_split ? "Shard(0)" : "Replicate()");
  }
  return text;
}

/// The root gathers once a step and keeps its parameters; a block for forward and again for backward.
std::string collectives_text(const shard::Engine& engine, const shard::Policy& policy) {
  const auto groups = static_cast<int64_t>(engine.groups().size());
  if (engine.mesh().world().world() == 1) return "none";
  if (engine.mesh().shard().world() == 1) return fmt::format("{} all-reduces", groups);
  const int64_t gathers = policy.reshard == shard::Reshard::AfterForward ? 2 * groups - 1 : groups;
  return fmt::format("{} all-gathers, {} reduce-scatters", gathers, groups);
}

}  // namespace

std::string inspection(const models::ModelConfig& model, const shard::Engine& engine, const shard::Policy& policy) {
  const shard::Mesh& mesh = engine.mesh();
  std::string text = fmt::format("model: {} with total parameters: {} ({:.2f} B)\n", models::name_of(model.family),
                                 with_thousands(models::parameter_count(model)),
                                 static_cast<double>(models::parameter_count(model)) / 1e9);
  text += fmt::format("mesh: replicate {} x shard {}, this is rank {}\n", mesh.replicate().world(),
                      mesh.shard().world(), mesh.world().rank());
  text += fmt::format("dtypes: shards and optimizer float32, parameters in use {}, reduced gradients {}\n",
                      name_of(policy.param_dtype), name_of(policy.reduce_dtype));
  text += fmt::format("a step of one micro-batch: {}\n", collectives_text(engine, policy));
  for (const auto& group : engine.groups()) text += group_text(*group, mesh);
  return text;
}

}  // namespace trainyard::train
