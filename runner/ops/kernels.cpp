#include "ops/kernels.h"

#include <fmt/format.h>

#include "ops/cuda/scratch.h"
#include "tensor/dry_run.h"

namespace trainyard::ops {
namespace {

constexpr Kernels kCpuKernels{
#define TRAINYARD_KERNEL(result, name, arguments, scratch) .name = cpu::name,
#include "ops/kernel_list.inc"
};

/// Takes the place of a device's kernel in a dry run: it holds what that would hold and computes nothing.
template <auto scratch>
struct HoldsScratch;
template <typename... Arguments, cuda::Scratch (*scratch)(Arguments...)>
struct HoldsScratch<scratch> {
  static void kernel(Arguments... arguments) {
    const cuda::Scratch held = scratch(arguments...);
    constexpr DType kUnread = DType::BFloat16;  // host code does not touch it in a dry run, so it needs no memory
    const auto elements = static_cast<int64_t>(static_cast<size_t>(held.bytes) / size_of(kUnread));
    if (elements > 0) static_cast<void>(Tensor::empty({elements}, kUnread, held.device));
  }
};

// What the words of the list mean. The CPU's kernels compute nothing in a dry run.
#define TRAINYARD_DRY_RUN_Counted(name) HoldsScratch<&cuda::scratch::name>::kernel
#define TRAINYARD_DRY_RUN_Little(name) cpu::name

constexpr Kernels kDryRunKernels{
#define TRAINYARD_KERNEL(result, name, arguments, scratch) .name = TRAINYARD_DRY_RUN_##scratch(name),
#include "ops/kernel_list.inc"
};

#undef TRAINYARD_DRY_RUN_Counted
#undef TRAINYARD_DRY_RUN_Little

}  // namespace

const Kernels& kernels_for(std::string_view op, std::span<const Tensor* const> tensors) {
  const Tensor* first = nullptr;
  for (const Tensor* const tensor : tensors) {
    if (!tensor->defined()) continue;
    if (!first) first = tensor;
    if (tensor->device() != first->device())
      throw std::invalid_argument(fmt::format("{}: one tensor is on {}, another on {}", op, to_string(first->device()),
                                              to_string(tensor->device())));
  }
  const bool is_on_cpu = !first || first->device().kind == DeviceKind::Cpu;
  if (is_on_cpu) return kCpuKernels;
  return dry_run() ? kDryRunKernels : *cuda_kernels();
}

}  // namespace trainyard::ops
