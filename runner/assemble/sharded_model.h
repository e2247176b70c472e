#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assemble/adapters.h"
#include "assemble/float8.h"
#include "assemble/wrap.h"
#include "context_parallel/attention.h"
#include "data/row_parts.h"
#include "models/model.h"
#include "shard/engine.h"
#include "shard/mesh.h"
#include "tensor_parallel/parallelize.h"

namespace trainyard::train {

/// A model and what holds its parameters. The weights are undefined until fill().
struct ShardedModel {
  std::unique_ptr<models::Model> model;
  std::shared_ptr<shard::Mesh> mesh;
  std::unique_ptr<shard::Engine> engine;
  std::optional<Float8Model> float8 = {};
  std::optional<Adapters> adapters = {};  ///< none: the model itself is trained
};

using shard::MeshSize;

/// How the ranks of a context share rows, where mesh.context is more than 1.
struct ContextParallel {
  context_parallel::Method method = context_parallel::Method::Ring;
  data::RowParts::Balance balance = data::RowParts::Balance::HeadTail;
};

/// What each rank of the mesh's context has of a row.
inline data::RowParts row_parts_of(const MeshSize& mesh, const ContextParallel& context) {
  return {mesh.context, context.balance};
}

/// The precision of the groups whose names a glob matches: a group's is its module's, that of the whole model "root".
struct PrecisionRule {
  std::string pattern;
  shard::MixedPrecision precision;
};

/// How a model is put onto the ranks.
struct Sharding {
  MeshSize mesh = {};
  shard::Policy policy = {};
  Wrap wrap = {};
  std::vector<std::string> freeze = {};  ///< globs over the names of parameters that are not trained
  /// Where several match a group the last counts, and where none does policy.precision.
  std::vector<PrecisionRule> precision = {};
  std::optional<Float8Layers> float8 = {};  ///< none: no layer is computed in 8 bits
  std::optional<nn::Lora> lora = {};        ///< none: the model itself is trained
  ContextParallel context = {};
  tensor_parallel::Options tensor = {};  ///< where mesh.tensor is more than 1
};

/// Builds the model, adapts, freezes and shards it: a group for what `wrap` says and one for the rest. Collective over
/// `world`, which must outlive it. Throws InputError for a glob or a target that matches nothing, where nothing is left
/// to train, and where the model's rows or layers cannot be split as mesh.context and mesh.tensor ask for.
ShardedModel shard_model(const models::ModelConfig& config, comm::Communicator& world, const Sharding& sharding);

/// Whose initial values count: each rank makes or reads its own rows, or rank 0 all of them, which it broadcasts.
enum class FilledBy { EachRank, Rank0 };

/// Random weights, the same at any number of ranks.
void fill_random(shard::Engine& engine, uint64_t seed, FilledBy by = FilledBy::EachRank);

/// Where weights come from that a model begins with.
struct StoredWeights {
  std::filesystem::path path;           ///< checkpoint/weights.h
  std::filesystem::path name_map = {};  ///< a file that gives them the model's names, or empty
  uint64_t seed = 0;                    ///< of what begins at random beside them: adapters
  std::filesystem::path adapter = {};   ///< what these begin as (checkpoint::open_adapter()), or empty
};

/// The weights, which only those who fill read. Throws InputError where a tensor is missing, its shape is not what
/// config.json says (both shapes are named), or there is more in the weights than the model reads and it counts
/// (stored_weights.h); what does not count rank 0 warns of.
void fill_from_weights(const ShardedModel& sharded, const StoredWeights& stored, FilledBy by = FilledBy::EachRank);

}  // namespace trainyard::train
