#pragma once

#include <optional>

#include "trainyard/export.h"
#include "trainyard/model.h"
#include "trainyard/process_group.h"

namespace trainyard::fsdp {

/// FSDP2's: what parameters are cast to where they are gathered and computed with, and in what gradients are reduced.
/// Shards, reduced gradients and optimizer state are float32 always.
struct MixedPrecisionPolicy {
  DType param_dtype = DType::Float32;
  DType reduce_dtype = DType::Float32;
  std::optional<DType> output_dtype = {};  ///< none: as it was computed
  bool cast_forward_inputs = true;
};

struct FullyShardOptions {
  MixedPrecisionPolicy mp_policy = {};
  /// Whether the parameters are given back after forward and gathered again for backward. None: they are, but for the
  /// whole model's, whose backward comes first.
  std::optional<bool> reshard_after_forward = {};
};

/// Makes one group of the parameters of `module` that are in none yet: gathered together before its forward and
/// backward, their gradients reduced together. Inner modules first, the whole model last; only then has it weights.
/// Every rank makes the same calls. Throws std::logic_error where all parameters are in groups already, or where the
/// mesh is not that of the earlier calls.
TRAINYARD_EXPORT void fully_shard(const Module& module, const DeviceMesh& mesh, const FullyShardOptions& options = {});

}  // namespace trainyard::fsdp
