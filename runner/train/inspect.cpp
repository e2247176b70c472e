#include "train/inspect.h"

#include <fmt/format.h>

#include "base/text.h"
#include "shard/traffic.h"

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

/// As FSDP2's MixedPrecisionPolicy spells it.
std::string precision_text(const shard::MixedPrecision& precision) {
  return fmt::format("param_dtype {}, reduce_dtype {}, output_dtype {}{}", name_of(precision.param_dtype),
                     name_of(precision.reduce_dtype),
                     precision.output_dtype ? name_of(*precision.output_dtype) : "none",
                     precision.cast_forward_inputs ? "" : ", inputs as they come");
}

std::string group_text(const shard::Group& group, const shard::Mesh& mesh) {
  const int world = mesh.shard().world();
  const char* const placement = mesh.replicate().world() > 1 ? "(Replicate(), Shard(0))" : "Shard(0)";
  std::string text = fmt::format("group {}: {} parameters; {}\n", group.label(),
                                 with_thousands(group.layout().whole_elements), precision_text(group.precision()));
  for (const shard::Piece& piece : group.layout().pieces) {
    const Shape& shape = piece.parameter->shape();
    text += fmt::format("  {:<48} {:>16}  {}{}{}\n", piece.parameter->name(), to_string(shape),
                        world > 1 ? fmt::format("{}  local {}", placement, local_shapes(shape, world)) : "Replicate()",
                        piece.parameter->float8() ? "  float8" : "", piece.parameter->is_frozen() ? "  frozen" : "");
  }
  return text;
}

std::string messages_text(const shard::Messages& messages, const char* what) {
  return messages.count == 0 ? "" : fmt::format("{} {} of {}, ", messages.count, what, human_bytes(messages.bytes));
}

std::string collectives_text(const shard::Engine& engine) {
  const shard::Traffic traffic = shard::traffic_of(engine, 1);
  std::string text = messages_text(traffic.gathers, "all-gathers") +
                     messages_text(traffic.scales, "all-reduces of float8 scales") +
                     messages_text(traffic.scatters, "reduce-scatters") + messages_text(traffic.sums, "all-reduces");
  if (text.empty()) return "none";
  return text.substr(0, text.size() - 2);
}

}  // namespace

std::string inspection(const models::ModelConfig& model, const shard::Engine& engine) {
  const shard::Mesh& mesh = engine.mesh();
  std::string text = fmt::format("model: {} with total parameters: {} ({:.2f} B)\n", model.family,
                                 with_thousands(models::parameter_count(model)),
                                 static_cast<double>(models::parameter_count(model)) / 1e9);
  text += fmt::format("mesh: replicate {} x shard {}\n", mesh.replicate().world(), mesh.shard().world());
  text += "dtypes: shards, reduced gradients and optimizer float32; of each group what it says\n";
  text += fmt::format("a step of one micro-batch: {}\n", collectives_text(engine));
  for (const auto& group : engine.groups()) text += group_text(*group, mesh);
  return text;
}

}  // namespace trainyard::train
