#pragma once

#include "config/load.h"
#include "tensor/device.h"

namespace trainyard::train {

/// What computes; auto: the GPU where there is one, else the CPU.
DeviceKind device_kind_of(config::DeviceChoice choice);
/// The same of a run, in which comm.backend may ask for one or the other.
DeviceKind device_kind_of(const config::Loaded& loaded);

/// Whether that is what can be used here, as neither device.kind nor comm.backend names one.
bool takes_what_is_there(const config::Loaded& loaded);

/// Throws InputError where device.kind, or comm.backend by what it needs, names a device that this host lacks, with
/// where the value came from, what is missing and what to use instead: before anybody is waited for.
void check_device(const config::Loaded& loaded);

}  // namespace trainyard::train
