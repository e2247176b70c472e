#pragma once

#include "launch/local_world.h"

namespace trainyard::launch {

/// The nodes of an elastic world (min:max) meet at the master's endpoint: once those that are wanted have come, or,
/// after the rendezvous time-out, those that have if they are at least min. Fills in the rest of `world`: the node of
/// the endpoint is the first, the others follow by their numbers. The ranks then meet at a port of their own on its
/// host. Throws PeerError where too few came, naming how many; InputError where the token or generation is refused.
LocalWorld agree_on_nodes(const LaunchOptions& options, LocalWorld world, const rendezvous::Environment& environment);

}  // namespace trainyard::launch
