#pragma once

#include "ops/kernels.h"

// The kernels of CUDA devices: each has the signature of the CPU's. All run on the current stream of their tensors'
// device; only those that return a value wait for it.
namespace trainyard::ops::cuda {

#define TRAINYARD_KERNEL(result, name, arguments, scratch) result name arguments;
#include "ops/kernel_list.inc"

}  // namespace trainyard::ops::cuda
