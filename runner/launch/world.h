#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "launch/options.h"

namespace trainyard::launch {

/// Where this node's ranks stand in the world.
struct LocalWorld {
  int ranks = 1;       ///< on this node
  int first_rank = 0;  ///< of this node
  int world = 1;
  int node_rank = 0;
  rendezvous::Endpoint master;
  /// Of a single node without a master: the port, bound and listening already, so that nobody takes it before rank 0
  /// does. Invalid where the ranks are other programs, which bind it themselves.
  UniqueFd listener;
  int cores = 1;
  int restart = 0;  ///< of the ranks
};

/// Decides it; for an elastic world together with the other nodes, with the highest `restart` of any. Throws
/// InputError, PeerError.
LocalWorld local_world(const LaunchOptions& options, const rendezvous::Environment& environment, int restart = 0);

/// The place of the only rank of a node, which needs no launcher: where `place` is a node that runs one rank only, and
/// never again.
/// `options` are its options_of(); an elastic world is formed on the way. None for any other place.
std::optional<rendezvous::Place> only_rank_of(const rendezvous::Place& place, const LaunchOptions& options,
                                              const rendezvous::Environment& environment);

/// The environment of one of its ranks: torchrun's variables in place of whatever was there.
std::vector<std::string> environment_of(int local_rank, const LocalWorld& world, const rendezvous::Environment& base);

}  // namespace trainyard::launch
