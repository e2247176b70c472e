#pragma once

#include "ops/cpu/kernels.h"

// What kernels of CUDA devices hold of the device's memory while they run, beside their arguments. Nothing here needs
// CUDA: a build without it plans for devices too.
namespace trainyard::ops::cuda {

/// A tensor that a kernel takes for as long as it runs. The kernel makes it from this description, and a dry run counts
/// the bytes of the same.
struct ScratchTensor {
  Shape shape;
  DType dtype;
  [[nodiscard]] Tensor on(Device device) const { return Tensor::empty(shape, dtype, device); }
  [[nodiscard]] int64_t bytes() const { return count_of(shape) * static_cast<int64_t>(size_of(dtype)); }
};

/// All that a kernel holds at once at most.
struct Scratch {
  Device device;
  int64_t bytes = 0;
};

/// For each kernel that is `Counted` in the list a function of the kernel's name and arguments, as exact as shapes tell
/// it. What a library asks for and only a device knows is taken as what it may ask for at most.
/// They are in cuda/…_scratch.cpp, beside the kernels, and defined as `scratch::name`: one that the list does not call
/// `Counted` does not compile.
namespace scratch {

#define TRAINYARD_SCRATCH_Counted(name, arguments) Scratch name arguments;
#define TRAINYARD_SCRATCH_Little(name, arguments)
#define TRAINYARD_KERNEL(result, name, arguments, scratch) TRAINYARD_SCRATCH_##scratch(name, arguments)
#include "ops/kernel_list.inc"
#undef TRAINYARD_SCRATCH_Counted
#undef TRAINYARD_SCRATCH_Little

}  // namespace scratch
}  // namespace trainyard::ops::cuda
