#pragma once

#include <filesystem>
#include <memory>

#include "models/model.h"
#include "shard/engine.h"
#include "shard/mesh.h"

namespace trainyard::train {

/// A model and what holds its parameters. The weights are undefined until fill().
struct ShardedModel {
  std::unique_ptr<models::Model> model;
  std::unique_ptr<shard::Mesh> mesh;
  std::unique_ptr<shard::Engine> engine;
};

using shard::MeshSize;

/// Builds the model and shards it, one group a block and one for the rest. Collective over `world`, which must outlive
/// it.
ShardedModel shard_model(const models::ModelConfig& config, comm::Communicator& world, MeshSize size,
                         const shard::Policy& policy);

/// Random weights, the same at any number of ranks.
void fill_random(shard::Engine& engine, uint64_t seed);

/// The weights of a Hugging Face folder, each rank its rows. Throws InputError where a tensor is missing, its shape
/// is not what config.json says (both shapes are named), or the folder holds more layers than config.json says.
void fill_from_hugging_face(const ShardedModel& sharded, const std::filesystem::path& folder);

}  // namespace trainyard::train
