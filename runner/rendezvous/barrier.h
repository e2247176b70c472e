#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "rendezvous/store.h"

namespace trainyard::rendezvous {

/// Says in the store that `rank` is at `name`, where every rank of the world comes once, and waits until all are.
/// Returns those that did not come within the time-out; none: all have. Throws PeerError naming the ranks that are
/// gone, as soon as one is.
std::vector<int> wait_for_all(Store& store, const std::string& name, int rank, int world,
                              std::chrono::milliseconds timeout);

}  // namespace trainyard::rendezvous
