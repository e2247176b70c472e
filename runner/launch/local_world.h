#pragma once

#include "common/unique_fd.h"
#include "launch/options.h"

namespace trainyard::launch {

/// Where this node's ranks stand in the world.
struct LocalWorld {
  int ranks = 1;       ///< on this node
  int first_rank = 0;  ///< of this node
  int world = 1;
  int node_rank = 0;
  rendezvous::Endpoint master;
  /// The port of a single node without a master, bound and listening already, so that nobody takes it before rank 0
  /// does. Invalid where the ranks are other programs, which bind it themselves.
  UniqueFd listener;
  int cores = 1;
  int restart = 0;  ///< of the ranks
};

}  // namespace trainyard::launch
