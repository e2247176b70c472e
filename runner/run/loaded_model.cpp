#include "run/loaded_model.h"

#include <fmt/format.h>

#include "assemble/model_config.h"
#include "assemble/run_spec.h"
#include "base/error.h"
#include "checkpoint/open_weights.h"
#include "checkpoint/reader.h"
#include "train/snapshot.h"

namespace trainyard::train {
namespace {

MeshSize mesh_of(const ModelSource& source, const World& world) {
  const int ranks = world.comm.world(), tensor = source.tensor;
  if (tensor > 1 && ranks == 1)
    throw InputError(fmt::format("--tensor is {0}, but there is one rank; start {0}: trainyard launch --nproc-per-node {0} …",
                                 tensor));
  if (ranks % tensor != 0)
    throw InputError(
        fmt::format("--tensor is {}, which does not divide the {} ranks; use a divisor of {}", tensor, ranks, ranks));
  return {.shard = ranks / tensor, .tensor = tensor};
}

LoadedModel load_folder(const std::filesystem::path& folder, const World& world, const Sharding& sharding) {
  const config::Model model{.init_from = folder.string()};
  LoadedModel loaded{shard_model(model_config_of(model, world.comm), world.comm, sharding), folder, folder.string()};
  fill_from_weights(loaded.sharded, {folder});
  return loaded;
}

LoadedModel load_checkpoint(const std::filesystem::path& folder, const World& world, const Sharding& sharding) {
  checkpoint::Agreement agreement(world.store, "weights", world.comm.rank(), world.comm.world(), world.comm.timeout());
  const checkpoint::Checkpoint found = checkpoint::open_checkpoint(folder, agreement);
  checkpoint::require_whole_model(found);
  LoadedModel loaded{shard_model(model_config_of(found), world.comm, sharding), found.path(),
                     found.state().value("tokenizer", "")};
  fill_from_checkpoint(*loaded.sharded.engine, found);
  return loaded;
}

}  // namespace

LoadedModel load_model(const ModelSource& source, const World& world) {
  const Sharding sharding{
      .mesh = mesh_of(source, world),
      .policy = {.device = world.device, .precision = {.param_dtype = dtype_of(source.param_dtype)}}};
  return source.checkpoint.empty() ? load_folder(source.model, world, sharding)
                                   : load_checkpoint(source.checkpoint, world, sharding);
}

}  // namespace trainyard::train
