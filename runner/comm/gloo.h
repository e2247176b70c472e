#pragma once

#include <memory>

#include "comm/communicator.h"
#include "comm/seen.h"
#include "comm/settings.h"

namespace trainyard::comm {

/// The world over gloo's TCP and, between ranks of one host, shared memory: settings.transport Gloo, world > 1.
std::unique_ptr<Communicator> connect_gloo(const Settings& settings, std::shared_ptr<Seen> seen);

}  // namespace trainyard::comm
