#pragma once

#include <memory>

#include "comm/communicator.h"
#include "comm/seen.h"
#include "comm/settings.h"

namespace trainyard::comm {

/// The world of mpirun: settings.transport Mpi, world > 1. Throws InputError where mpirun's world is another than
/// settings' or this process was not started by mpirun.
std::unique_ptr<Communicator> connect_mpi(const Settings& settings, std::shared_ptr<Seen> seen);

}  // namespace trainyard::comm
