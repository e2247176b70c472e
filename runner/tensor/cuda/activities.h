#pragma once

#include <string>

#include "tensor/device_trace.h"

// What the process's devices do, from CUPTI, which is opened at the first call. Any thread.
namespace trainyard::cuda {

/// What devices do from now on is written down, until as many calls of end_activities(). Throws InputError where CUPTI
/// cannot be opened or refuses.
void begin_activities();
void end_activities() noexcept;

/// What one device has done since, and is over.
DeviceTrace::Seen activities_of(int device);

/// "map_kernel<BFloat16>" for a kernel's name as the compiler mangles it: without result, parameters and namespaces of
/// ours.
std::string kernel_name(const char* mangled);

}  // namespace trainyard::cuda
