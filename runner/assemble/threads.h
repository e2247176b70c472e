#pragma once

#include "config/config.h"

namespace trainyard::train {

/// CPU threads for each rank of a host: what device.threads says, else the cores dealt out.
int threads_of(const config::DeviceSection& device, int local_world);

/// Threads for what one rank reads for all of its node: the node's cores.
int threads_of_node();

}  // namespace trainyard::train
