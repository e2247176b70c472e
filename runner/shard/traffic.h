#pragma once

#include <cstdint>

#include "shard/engine.h"

namespace trainyard::shard {

/// Messages of one kind.
struct Messages {
  int64_t count = 0;
  uint64_t bytes = 0;  ///< the whole side of each: what a rank ends with of a gather, begins with of a reduction
  bool operator==(const Messages&) const = default;
};

/// What a step sends.
struct Traffic {
  Messages gathers, scatters, sums;  ///< sums: over replicas
  Messages tensor_sums;              ///< over the tensor dimension, of what is not split and of shared KV heads
  Messages scales;                   ///< maxima over shards, of weights that are gathered in 8 bits
  bool operator==(const Traffic&) const = default;
};

/// Of one step of `micro_batches` on groups whose modules do not compute inside one another, each used once a pass:
/// with G groups, gathers a micro-batch are 2G − 1 where parameters are given back after forward (the root keeps its
/// own), else G, none where nothing is sharded, and twice as many of groups that gather in two dtypes; reductions are
/// one a group that trains, after the last micro-batch or after each (docs/strategies.md).
Traffic traffic_of(const Engine& engine, int64_t micro_batches);

}  // namespace trainyard::shard
