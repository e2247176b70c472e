#include "train/sharded_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "checkpoint/hugging_face.h"
#include "nn/init.h"

namespace trainyard::train {

ShardedModel shard_model(const models::ModelConfig& config, comm::Communicator& world, MeshSize size,
                         const shard::Policy& policy) {
  ShardedModel made{models::build(config), std::make_unique<shard::Mesh>(world, size), nullptr};
  made.engine = std::make_unique<shard::Engine>(*made.mesh, policy);
  for (nn::Module* const block : made.model->blocks()) made.engine->fully_shard(*block);
  made.engine->fully_shard(*made.model);
  return made;
}

void fill_random(shard::Engine& engine, uint64_t seed) {
  engine.fill([seed](const autograd::Parameter& parameter, shard::Rows rows, std::span<float> out) {
    nn::initial_rows(parameter, seed, rows.begin, rows.count, out);
  });
}

namespace {

/// Part of a model would train without a word. What no layer is (a stored copy of a tied head) may be left over.
void refuse_more_layers(const checkpoint::HuggingFaceWeights& weights, size_t layers) {
  constexpr std::string_view kLayers = "model.layers.";
  for (const std::string& name : weights.names()) {
    if (!name.starts_with(kLayers)) continue;
    const auto layer = parse_int(name.substr(kLayers.size(), name.find('.', kLayers.size()) - kLayers.size()));
    if (layer && *layer >= static_cast<int64_t>(layers))
      throw InputError(fmt::format("{}: holds {}, but config.json has num_hidden_layers {}",
                                   weights.path_of(name).string(), name, layers));
  }
}

}  // namespace

void fill_from_hugging_face(const ShardedModel& sharded, const std::filesystem::path& folder) {
  const checkpoint::HuggingFaceWeights weights(folder);
  refuse_more_layers(weights, sharded.model->blocks().size());
  sharded.engine->fill([&](const autograd::Parameter& parameter, shard::Rows rows, std::span<float> out) {
    if (weights.shape(parameter.name()) != parameter.shape())
      throw InputError(fmt::format("{}: {} is {}, but config.json makes it {}",
                                   weights.path_of(parameter.name()).string(), parameter.name(),
                                   to_string(weights.shape(parameter.name())), to_string(parameter.shape())));
    const Tensor read = weights.read_rows(parameter.name(), rows.begin, rows.count);
    std::ranges::copy(read.values<float>(), out.begin());
  });
}

}  // namespace trainyard::train
