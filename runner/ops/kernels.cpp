#include "ops/kernels.h"

#include <fmt/format.h>

#include "ops/rehearsed.h"
#include "tensor/dry_run.h"

namespace trainyard::ops {
namespace {

constexpr Kernels kCpuKernels{
    .absmax = cpu::absmax,
    .activation = cpu::activation,
    .activation_backward = cpu::activation_backward,
    .adamw_step = cpu::adamw_step,
    .add = cpu::add,
    .add_bias = cpu::add_bias,
    .add_rms_norm = cpu::add_rms_norm,
    .add_to = cpu::add_to,
    .all_finite = cpu::all_finite,
    .attention = cpu::attention,
    .attention_backward = cpu::attention_backward,
    .bias_backward = cpu::bias_backward,
    .cast = cpu::cast,
    .channels_first = cpu::channels_first,
    .channels_last = cpu::channels_last,
    .clip_factor = cpu::clip_factor,
    .cross_entropy = cpu::cross_entropy,
    .dropout = cpu::dropout,
    .embedding = cpu::embedding,
    .embedding_backward = cpu::embedding_backward,
    .fill = cpu::fill,
    .float8_cast = cpu::float8_cast,
    .float8_matmul = cpu::float8_matmul,
    .float8_scale = cpu::float8_scale,
    .layer_norm = cpu::layer_norm,
    .layer_norm_backward = cpu::layer_norm_backward,
    .linear_cross_entropy = cpu::linear_cross_entropy,
    .matmul = cpu::matmul,
    .max_pool = cpu::max_pool,
    .max_pool_backward = cpu::max_pool_backward,
    .multiply = cpu::multiply,
    .relative_bias = cpu::relative_bias,
    .relative_bias_backward = cpu::relative_bias_backward,
    .rms_norm = cpu::rms_norm,
    .rms_norm_backward = cpu::rms_norm_backward,
    .rms_norm_rope = cpu::rms_norm_rope,
    .rms_norm_rope_backward = cpu::rms_norm_rope_backward,
    .rope = cpu::rope,
    .scale = cpu::scale,
    .set_zero = cpu::set_zero,
    .sum = cpu::sum,
    .sums_of_squares = cpu::sums_of_squares,
    .swiglu = cpu::swiglu,
    .swiglu_backward = cpu::swiglu_backward,
    .unfold = cpu::unfold,
    .unfold_backward = cpu::unfold_backward,
};

/// Those of the CPU, which compute nothing in a dry run, but for what holds memory of its own on a device.
constexpr Kernels kRehearsedKernels = [] {
  Kernels kernels = kCpuKernels;
  kernels.attention = rehearsed::attention;
  kernels.attention_backward = rehearsed::attention_backward;
  kernels.bias_backward = rehearsed::bias_backward;
  kernels.float8_matmul = rehearsed::float8_matmul;
  kernels.layer_norm_backward = rehearsed::layer_norm_backward;
  kernels.matmul = rehearsed::matmul;
  kernels.rms_norm_backward = rehearsed::rms_norm_backward;
  kernels.rms_norm_rope_backward = rehearsed::rms_norm_rope_backward;
  return kernels;
}();

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
  return dry_run() ? kRehearsedKernels : *cuda_kernels();
}

}  // namespace trainyard::ops
