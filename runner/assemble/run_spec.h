#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "assemble/mesh_size.h"
#include "assemble/recompute.h"
#include "assemble/sharded_model.h"
#include "config/load.h"
#include "optim/loss_scaler.h"
#include "tensor/memory.h"

// The one place where the words of a configuration that say how a run is laid out become values.
namespace trainyard::train {

DType dtype_of(config::Precision precision);

/// The rows that a rank takes at once.
struct BatchSize {
  int64_t rows = 0;             ///< of a rank and micro-batch
  int64_t sequence_length = 0;  ///< tokens of a row of a corpus
  int64_t accumulation_steps = 1;
};

/// How the loss is scaled. Whether it has to be is known once the groups of a model have their precision.
struct LossScale {
  bool is_automatic = true;  ///< dynamic where a group uses float16, else none
  optim::LossScaling scaling = {};
};

/// How a run is laid out, on ranks that are known: strategy, mesh, precision, wrapping, recomputation and batch. What
/// plans, shards, trains and evaluates takes this, and asks the configuration for none of it again.
struct RunSpec {
  std::string strategy;  ///< as PyTorch spells it: FULL_SHARD
  Sharding sharding;
  Recompute recompute;
  FilledBy filled_by = FilledBy::EachRank;
  LossScale loss_scale;
  BatchSize batch, held_out;
  std::vector<MemoryKind> on_host;  ///< what a rank has in host memory beside its device; nothing of a CPU's

  [[nodiscard]] bool offloads() const { return sharding.policy.offload || recompute.retention.offload; }
};

/// The layout of a run on these ranks, for one that computes on `device`. Where the batch counts, `loaded` is what
/// config::for_world() gave. Throws InputError as mesh_of() does.
RunSpec resolve(const config::Loaded& loaded, const Ranks& ranks, Device device);

/// The same for the ranks of `world`. Collective; they are asked for their nodes where that matters.
RunSpec resolve(const config::Loaded& loaded, const World& world);

/// What spec.loss_scale comes to with the groups of `engine`.
optim::LossScaling loss_scaling_of(const LossScale& wanted, const shard::Engine& engine);

}  // namespace trainyard::train
