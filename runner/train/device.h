#pragma once

#include "config/load.h"

namespace trainyard::train {

/// Throws InputError where device.kind, or comm.backend by what it needs, names a device that training cannot use here,
/// with where the value came from, what is missing and what to use instead.
void check_device(const config::Loaded& loaded);

}  // namespace trainyard::train
