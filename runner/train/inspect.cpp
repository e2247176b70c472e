#include "train/inspect.h"

#include <fmt/format.h>

#include "base/text.h"

namespace trainyard::train {
namespace {

/// What each rank of `world` holds of a tensor of this shape: "[2, 5] on ranks 0-2, [1, 5] on rank 3". A split has at
/// most three sizes, so this is short in any world.
std::string local_shapes(Shape shape, int world) {
  const int64_t rows = shape[0];
  std::string text;
  for (int first = 0, next = 0; first < world; first = next) {
    shape[0] = shard::chunk_of(rows, world, first).count;
    while (next < world && shard::chunk_of(rows, world, next).count == shape[0]) ++next;
    const bool is_one = next - first == 1;
    text += fmt::format("{}{} on {}", text.empty() ? "" : ", ", to_string(shape),
                        is_one ? fmt::format("rank {}", first) : fmt::format("ranks {}-{}", first, next - 1));
  }
  return text;
}

std::string group_text(const shard::Group& group, const shard::Mesh& mesh) {
  const int world = mesh.shard().world();
  const char* const placement = mesh.replicate().world() > 1 ? "(Replicate(), Shard(0))" : "Shard(0)";
  std::string text =
      fmt::format("group {}: {} parameters\n", group.label(), with_thousands(group.layout().whole_elements));
  for (const shard::Piece& piece : group.layout().pieces) {
    const Shape& shape = piece.parameter->shape();
    text += fmt::format("  {:<48} {:>16}  {}\n", piece.parameter->name(), to_string(shape),
                        world > 1 ? fmt::format("{}  local {}", placement, local_shapes(shape, world)) : "Replicate()");
  }
  return text;
}

/// The root gathers once a step and keeps its parameters; a block for forward and again for backward.
std::string collectives_text(const shard::Engine& engine, const shard::Policy& policy) {
  const auto groups = static_cast<int64_t>(engine.groups().size());
  if (engine.mesh().world().world() == 1) return "none";
  if (engine.mesh().shard().world() == 1) return fmt::format("{} all-reduces", groups);
  const int64_t gathers = policy.reshard == shard::Reshard::AfterForward ? 2 * groups - 1 : groups;
  std::string text = fmt::format("{} all-gathers, {} reduce-scatters", gathers, groups);
  if (engine.mesh().replicate().world() > 1) text += fmt::format(", {} all-reduces", groups);
  return text;
}

}  // namespace

std::string inspection(const models::ModelConfig& model, const shard::Engine& engine, const shard::Policy& policy) {
  const shard::Mesh& mesh = engine.mesh();
  std::string text = fmt::format("model: {} with total parameters: {} ({:.2f} B)\n", models::name_of(model.family),
                                 with_thousands(models::parameter_count(model)),
                                 static_cast<double>(models::parameter_count(model)) / 1e9);
  text += fmt::format("mesh: replicate {} x shard {}\n", mesh.replicate().world(), mesh.shard().world());
  text += fmt::format("dtypes: shards and optimizer float32, parameters in use {}, reduced gradients {}\n",
                      name_of(policy.param_dtype), name_of(policy.reduce_dtype));
  text += fmt::format("a step of one micro-batch: {}\n", collectives_text(engine, policy));
  for (const auto& group : engine.groups()) text += group_text(*group, mesh);
  return text;
}

}  // namespace trainyard::train
