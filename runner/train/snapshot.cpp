#include "train/snapshot.h"

#include <fmt/format.h>

#include "base/error.h"
#include "train/setup.h"

namespace trainyard::train {
namespace {

using nlohmann::json;

checkpoint::Shard shard_of(const std::string& prefix, const shard::ParameterShard& shard, const Tensor& local) {
  return {prefix + shard.parameter->name(), shard.parameter->shape(), shard.rows.begin, local};
}

std::vector<checkpoint::Shard> parameters_of(const shard::Engine& engine) {
  std::vector<checkpoint::Shard> shards;
  for (const shard::ParameterShard& shard : engine.shards()) shards.push_back(shard_of("", shard, shard.value));
  return shards;
}

std::vector<checkpoint::Shard> moments_of(optim::AdamW& optimizer) {
  std::vector<checkpoint::Shard> shards;
  for (const optim::AdamW::Moments& moments : optimizer.moments()) {
    shards.push_back(shard_of("adam.m.", *moments.shard, moments.first));
    shards.push_back(shard_of("adam.v.", *moments.shard, moments.second));
  }
  return shards;
}

int64_t whole_number(const checkpoint::Checkpoint& checkpoint, const char* key) {
  const auto found = checkpoint.state().find(key);
  if (found == checkpoint.state().end() || !found->is_number_integer())
    throw InputError(fmt::format("{}: the state has no whole number '{}': not a checkpoint of a training run",
                                 checkpoint.path().string(), key));
  return found->get<int64_t>();
}

/// Shapes alone do not tell: fewer layers find all their tensors, other heads the same rows.
void require_same_model(const checkpoint::Checkpoint& checkpoint, const models::ModelConfig& model) {
  const json ours = json::parse(models::to_hugging_face(model));
  const json saved = json::parse(models::to_hugging_face(model_config_of(checkpoint)));
  for (const auto& [name, value] : ours.items()) {
    const bool changes_numbers = name != "initializer_range" && name != "max_position_embeddings";
    if (!changes_numbers || saved.at(name) == value) continue;
    throw InputError(
        fmt::format("{}: a checkpoint of another model: {} is {} there and {} in this run; choose another "
                    "checkpoint.dir, or start anew with --checkpoint.resume never",
                    checkpoint.path().string(), name, saved.at(name).dump(), value.dump()));
  }
}

}  // namespace

checkpoint::Snapshot snapshot_of(const Parts& parts, const Progress& progress, const Description& description) {
  checkpoint::Snapshot snapshot{.step = progress.step,
                                .holders = parts.engine.mesh().holders(),
                                .model = parameters_of(parts.engine),
                                .optimizer = moments_of(parts.optimizer)};
  snapshot.state = {{"tokens", progress.tokens},
                    {"optimizer_steps", parts.optimizer.steps_done()},
                    {"loader", parts.loader.state()},
                    {"config_json", description.config_json},
                    {"tokenizer", description.tokenizer},
                    {"tokenizer_files", description.tokenizer_files},
                    {"configuration", description.configuration}};
  return snapshot;
}

Progress restore(Parts& parts, const checkpoint::Checkpoint& checkpoint, const models::ModelConfig& model) {
  require_same_model(checkpoint, model);
  fill_from_checkpoint(parts.engine, checkpoint);
  for (checkpoint::Shard& shard : moments_of(parts.optimizer)) checkpoint.read_into(shard);
  parts.optimizer.set_steps_done(whole_number(checkpoint, "optimizer_steps"));
  parts.loader.load_state(checkpoint.state().at("loader"));
  return {checkpoint.step(), whole_number(checkpoint, "tokens")};
}

void fill_from_checkpoint(shard::Engine& engine, const checkpoint::Checkpoint& checkpoint) {
  for (checkpoint::Shard& shard : parameters_of(engine)) checkpoint.read_into(shard);
}

}  // namespace trainyard::train
