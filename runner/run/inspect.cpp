#include "run/inspect.h"

#include <fmt/format.h>

#include "base/text.h"
#include "models/family.h"
#include "shard/traffic.h"

namespace trainyard::train {
namespace {

/// What each of `world` shards holds of a tensor of this shape: "[2, 5] on ranks 0-2, [1, 5] on rank 3" where `what` is
/// "rank". A split has at most three sizes, so this is short in any world.
std::string local_shapes(Shape shape, int world, const char* what) {
  const int64_t rows = shape[0];
  std::string text;
  for (int first = 0, next = 0; first < world; first = next) {
    shape[0] = chunk_of(rows, world, first).count;
    while (next < world && chunk_of(rows, world, next).count == shape[0]) ++next;
    const bool is_one = next - first == 1;
    text += fmt::format("{}{} on {}", text.empty() ? "" : ", ", to_string(shape),
                        is_one ? fmt::format("{} {}", what, first) : fmt::format("{}s {}-{}", what, first, next - 1));
  }
  return text;
}

/// The precision as FSDP2's MixedPrecisionPolicy spells it.
std::string precision_text(const shard::MixedPrecision& precision) {
  return fmt::format("param_dtype {}, reduce_dtype {}, output_dtype {}{}", name_of(precision.param_dtype),
                     name_of(precision.reduce_dtype),
                     precision.output_dtype ? name_of(*precision.output_dtype) : "none",
                     precision.cast_forward_inputs ? "" : ", inputs as they come");
}

/// Where a parameter lies over the shards and copies of a mesh, as DTensor prints it.
std::string over_shards(const shard::Mesh& mesh) {
  if (mesh.of(shard::Dimension::Shard).world() == 1) return "Replicate()";
  return mesh.of(shard::Dimension::Replicate).world() > 1 ? "(Replicate(), Shard(0))" : "Shard(0)";
}

/// The same with a tensor dimension, in its words: "column over tensor, rows over shard".
std::string over_tensor(const nn::Placements& placements, const autograd::Parameter& parameter,
                        const shard::Mesh& mesh) {
  const nn::ModulePlacement* const line = nn::placement_of_weight(placements, parameter.name());
  std::string text = line ? fmt::format("{} over tensor", nn::name_of(line->placement)) : "whole on each of tensor";
  if (mesh.of(shard::Dimension::Shard).world() > 1) text += ", rows over shard";
  if (mesh.of(shard::Dimension::Replicate).world() > 1) text += ", copies over replicate";
  return text;
}

/// What sets a parameter apart, of which this rank's rows are in `kept`.
std::string traits_of(const autograd::Parameter& parameter, DType kept) {
  std::string text = parameter.float8() ? "  float8" : "";
  if (parameter.is_frozen()) text += "  frozen";
  if (parameter.is_base()) text += fmt::format(" in {}", parameter.is_nf4() ? "nf4" : name_of(kept));
  return text;
}

std::string group_text(const shard::Group& group, const shard::Mesh& mesh, const nn::Placements& placements) {
  const int world = mesh.of(shard::Dimension::Shard).world();
  const bool has_tensor = mesh.size().tensor > 1;
  std::string text =
      fmt::format("group {}: {} parameters{}; {}\n", group.label(), with_thousands(group.layout().unsharded_elements),
                  has_tensor ? " on the first rank of tensor" : "", precision_text(group.precision()));
  const std::vector<Tensor> rows = group.shard_rows();
  for (size_t i = 0; i < rows.size(); ++i) {
    const autograd::Parameter& parameter = *group.layout().pieces[i].parameter;
    std::string place = has_tensor ? over_tensor(placements, parameter, mesh) : over_shards(mesh);
    if (has_tensor && parameter.is_split()) place += "  its part " + to_string(parameter.shape());
    if (world > 1) place += "  local " + local_shapes(parameter.shape(), world, has_tensor ? "shard" : "rank");
    text += fmt::format("  {:<48} {:>16}  {}{}\n", parameter.name(), to_string(parameter.whole_shape()), place,
                        traits_of(parameter, rows[i].dtype()));
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
                     messages_text(traffic.scatters, "reduce-scatters") + messages_text(traffic.sums, "all-reduces") +
                     messages_text(traffic.tensor_sums, "all-reduces over tensor");
  if (text.empty()) return "none";
  return text.substr(0, text.size() - 2);
}

}  // namespace

std::string inspection(const models::ModelConfig& model, const shard::Engine& engine) {
  const shard::Mesh& mesh = engine.mesh();
  std::string text = fmt::format("model: {} with total parameters: {} ({:.2f} B)\n", model.family,
                                 with_thousands(models::parameter_count(model)),
                                 static_cast<double>(models::parameter_count(model)) / 1e9);
  text += fmt::format("mesh: replicate {} x shard {}{}{}\n", mesh.size().replicate, mesh.size().shard,
                      mesh.size().context > 1 ? fmt::format(" x context {}", mesh.size().context) : "",
                      mesh.size().tensor > 1 ? fmt::format(" x tensor {}", mesh.size().tensor) : "");
  text += "dtypes: shards of what is trained, reduced gradients and optimizer float32; of each group what it says\n";
  text += fmt::format("a step of one micro-batch: {}\n", collectives_text(engine));
  const nn::Placements& placements = models::family_of(model).placements;
  for (const auto& group : engine.groups()) text += group_text(*group, mesh, placements);
  return text;
}

}  // namespace trainyard::train
