#pragma once

#include "tensor/dtype.h"

namespace trainyard::shard {

/// When a group gives its unsharded parameters back after forward.
enum class Reshard {
  AfterForward,   ///< at once, and gathers them again for backward (FULL_SHARD); the root keeps them
  AfterBackward,  ///< keeps them in between (SHARD_GRAD_OP)
};

/// What FSDP2 calls the arguments of fully_shard and its MixedPrecisionPolicy. The strategy's other half is the mesh.
struct Policy {
  Reshard reshard = Reshard::AfterForward;
  DType param_dtype = DType::Float32;   ///< of unsharded parameters, gathers and compute; shards are float32
  DType reduce_dtype = DType::Float32;  ///< of unsharded gradients and their reduction; reduced ones are float32
  int prefetch = 1;                     ///< groups gathered ahead of the one in use
  bool sync_every_micro_batch =
      false;  ///< reduce each micro-batch's gradients, not only their sum: less memory, more traffic
};

}  // namespace trainyard::shard
