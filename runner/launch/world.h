#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/local_world.h"

namespace trainyard::launch {

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
