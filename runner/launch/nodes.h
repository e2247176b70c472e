#pragma once

#include "launch/world.h"

namespace trainyard::launch {

/// The nodes of an elastic world (min:max) meet at the master's endpoint: all of them once there are max, or, after the
/// rendezvous time-out, those that came if they are at least min. Fills in the rest of `world`. The ranks then meet at
/// a port of their own on the host of the endpoint. Throws PeerError where too few came, naming how many; InputError
/// where the token or generation is refused.
LocalWorld agree_on_nodes(const LaunchOptions& options, LocalWorld world, const rendezvous::Environment& environment);

}  // namespace trainyard::launch
