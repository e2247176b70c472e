#pragma once

#include "assemble/world.h"
#include "config/load.h"
#include "shard/mesh.h"

// The words of [parallel] become the sizes of a mesh here.
namespace trainyard::train {

/// The ranks that were started.
struct Ranks {
  int world = 1;
  int a_node = 1;  ///< 0: nodes have different numbers of them, or a node's are not neighbours in number
};

/// Collective: what the ranks say of their nodes. A node is what has a launcher: a host, or a pod.
Ranks ranks_of(const World& world);

/// The mesh that parallel.strategy, shard, replicate and context ask for. What is -1 is the rest; where both are, the
/// strategy says: full_shard and shard_grad_op are 1 × world, no_shard world × 1, hybrid_* nodes × ranks of a node.
/// Throws InputError where the sizes do not multiply up to the world, or a hybrid strategy lacks nodes, or
/// parallel.reshard_after_forward is no divisor of the ranks of a copy:
/// "train.yaml:14: parallel.shard is 6, but 4 processes were started; use 1, 2, 4, or -1 for the rest".
shard::MeshSize mesh_of(const config::Loaded& loaded, const Ranks& ranks);

/// The same for the ranks of `world`. Collective; ranks_of is asked where it matters.
shard::MeshSize mesh_of(const config::Loaded& loaded, const World& world);

}  // namespace trainyard::train
