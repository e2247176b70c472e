#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "comm/communicator.h"

namespace trainyard::comm {

/// The communicators of `world` ranks that are threads of this process: element r is for the thread of rank r. Ranks
/// read each other's tensors in place. Deterministic, and the reference for the other backends.
/// A rank whose communicator is destroyed before close() counts as lost: the others get PeerError at once.
std::vector<std::unique_ptr<Communicator>> make_in_process(int world, std::chrono::milliseconds timeout);

}  // namespace trainyard::comm
