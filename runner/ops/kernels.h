#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include "ops/cpu/kernels.h"

namespace trainyard::ops {

/// What a device provides for the ops: one function each, of the signature that the CPU's has.
struct Kernels {
#define TRAINYARD_KERNEL(result, name, arguments, scratch) decltype(&cpu::name) name;
#include "ops/kernel_list.inc"
};

/// That of CUDA devices; null in a build without.
const Kernels* cuda_kernels();

/// Those of the device on which all of `tensors` lie; undefined ones do not count. In a dry run for a device they
/// compute nothing, and hold what cuda/scratch.h says of the device's kernels. Throws std::invalid_argument, naming
/// both, where two lie on different devices.
const Kernels& kernels_for(std::string_view op, std::span<const Tensor* const> tensors);

/// The one line that chooses a device:
///   kernel("add", &Kernels::add, {&a, &b, &out})(a, b, out);
template <typename Function>
Function* kernel(std::string_view op, Function* Kernels::*member, std::span<const Tensor* const> tensors) {
  return kernels_for(op, tensors).*member;
}
template <typename Function>
Function* kernel(std::string_view op, Function* Kernels::*member, std::initializer_list<const Tensor*> tensors) {
  return kernel(op, member, std::span(tensors.begin(), tensors.size()));
}

}  // namespace trainyard::ops
