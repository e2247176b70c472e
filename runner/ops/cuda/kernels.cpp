#include "ops/cuda/kernels.h"

namespace trainyard::ops {
namespace {

constexpr Kernels kCudaKernels{
#define TRAINYARD_KERNEL(result, name, arguments, scratch) .name = cuda::name,
#include "ops/kernel_list.inc"
};

}  // namespace

const Kernels* cuda_kernels() {
  return &kCudaKernels;
}

}  // namespace trainyard::ops
