#pragma once

#include <cstdint>
#include <optional>

#include "tensor/device.h"
#include "tensor/dtype.h"

namespace trainyard::shard {

/// When a group gives its unsharded parameters back after forward.
enum class Reshard {
  AfterForward,   ///< at once, and gathers them again for backward (FULL_SHARD); the root keeps them
  AfterBackward,  ///< keeps them in between (SHARD_GRAD_OP)
};

/// When backward asks for the groups that come next.
enum class BackwardPrefetch {
  Pre,   ///< before this group's backward: the most overlap, and one group more in memory
  Post,  ///< after it, before its gradients are reduced: the gather overlaps the reduction
  None,  ///< when their own backward begins
};

/// Which gathers are asked for ahead of use, and how many at once.
struct Prefetch {
  int forward = 1, backward = 1;  ///< groups ahead of the one in use
  BackwardPrefetch when = BackwardPrefetch::Pre;
  bool early = false;  ///< a step's first groups are gathered before its data is there (begin_step)
  /// Gathers under way at once; the oldest is waited for before another begins. 0: any number.
  int most_in_flight = 2;
};

/// FSDP2's MixedPrecisionPolicy, of one group. Shards of what is trained, reduced gradients and optimizer state are
/// float32 always.
struct MixedPrecision {
  DType param_dtype = DType::Float32;      ///< of unsharded parameters, gathers and compute
  DType reduce_dtype = DType::Float32;     ///< of unsharded gradients and their reduction
  std::optional<DType> output_dtype = {};  ///< of what the group's modules give; none: as it was computed
  bool cast_forward_inputs = true;         ///< what they get is cast to param_dtype
  bool operator==(const MixedPrecision&) const = default;
};

/// What one fully_shard call may say for its group.
struct GroupPolicy {
  std::optional<MixedPrecision> precision = {};  ///< none: the policy's
  /// None: the policy's, but that the whole model keeps its parameters: its backward comes first, so a reshard after
  /// forward would gather them again at once.
  std::optional<Reshard> reshard = {};
};

/// Whether any of it is float16, whose gradients underflow unless the loss is scaled.
constexpr bool uses_float16(const MixedPrecision& precision) {
  return precision.param_dtype == DType::Float16 || precision.reduce_dtype == DType::Float16 ||
         precision.output_dtype == DType::Float16;
}

/// What FSDP2 calls the arguments of fully_shard. The strategy's other half is the mesh.
struct Policy {
  Device device = {};  ///< where parameters are gathered and gradients reduced, and so where the model computes
  /// Shards, their gradients and what is made like them stay in pinned host memory, where the optimizer then steps
  /// (FSDP2's CPUOffloadPolicy). Nothing to do where the device is the CPU.
  bool offload = false;
  Reshard reshard = Reshard::AfterForward;
  MixedPrecision precision = {};  ///< of groups that are given none of their own
  /// In what a base (Parameter::is_base()) is kept and gathered, to be computed with in param_dtype: it never changes,
  /// so it has no float32 from which that is made. None: its group's param_dtype.
  std::optional<DType> base_dtype = {};
  /// Weights of linear layers that are computed in 8 bits (Parameter::float8()) are gathered in 8 bits too, each with
  /// one scale, which all ranks agree on once a step. For Float8Recipe::Tensorwise alone.
  bool float8_all_gather = false;
  Prefetch prefetch = {};
  /// Reduce each micro-batch's gradients, not only their sum: less memory, more traffic.
  bool sync_every_micro_batch = false;
  /// Most bytes of one message where gradients are summed and nothing is sharded (DDP's bucket).
  int64_t bucket_bytes = int64_t{25} << 20;
};

}  // namespace trainyard::shard
