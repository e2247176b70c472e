#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include "ops/cpu/kernels.h"

namespace trainyard::ops {

/// What a device provides for the ops: one function each, arguments as in the op's header, already checked there.
struct Kernels {
  decltype(&cpu::absmax) absmax;
  decltype(&cpu::activation) activation;
  decltype(&cpu::activation_backward) activation_backward;
  decltype(&cpu::adamw_step) adamw_step;
  decltype(&cpu::add) add;
  decltype(&cpu::add_bias) add_bias;
  decltype(&cpu::add_rms_norm) add_rms_norm;
  decltype(&cpu::add_to) add_to;
  decltype(&cpu::all_finite) all_finite;
  decltype(&cpu::attention) attention;
  decltype(&cpu::attention_backward) attention_backward;
  decltype(&cpu::bias_backward) bias_backward;
  decltype(&cpu::cast) cast;
  decltype(&cpu::channels_first) channels_first;
  decltype(&cpu::channels_last) channels_last;
  decltype(&cpu::clip_factor) clip_factor;
  decltype(&cpu::cross_entropy) cross_entropy;
  decltype(&cpu::dropout) dropout;
  decltype(&cpu::embedding) embedding;
  decltype(&cpu::embedding_backward) embedding_backward;
  decltype(&cpu::fill) fill;
  decltype(&cpu::float8_cast) float8_cast;
  decltype(&cpu::float8_matmul) float8_matmul;
  decltype(&cpu::float8_scale) float8_scale;
  decltype(&cpu::layer_norm) layer_norm;
  decltype(&cpu::layer_norm_backward) layer_norm_backward;
  decltype(&cpu::linear_cross_entropy) linear_cross_entropy;
  decltype(&cpu::matmul) matmul;
  decltype(&cpu::max_pool) max_pool;
  decltype(&cpu::max_pool_backward) max_pool_backward;
  decltype(&cpu::multiply) multiply;
  decltype(&cpu::relative_bias) relative_bias;
  decltype(&cpu::relative_bias_backward) relative_bias_backward;
  decltype(&cpu::rms_norm) rms_norm;
  decltype(&cpu::rms_norm_backward) rms_norm_backward;
  decltype(&cpu::rms_norm_rope) rms_norm_rope;
  decltype(&cpu::rms_norm_rope_backward) rms_norm_rope_backward;
  decltype(&cpu::rope) rope;
  decltype(&cpu::scale) scale;
  decltype(&cpu::set_zero) set_zero;
  decltype(&cpu::sum) sum;
  decltype(&cpu::sums_of_squares) sums_of_squares;
  decltype(&cpu::swiglu) swiglu;
  decltype(&cpu::swiglu_backward) swiglu_backward;
  decltype(&cpu::unfold) unfold;
  decltype(&cpu::unfold_backward) unfold_backward;
};

/// That of CUDA devices; null in a build without.
const Kernels* cuda_kernels();

/// Those of the device on which all of `tensors` lie; undefined ones do not count. In a dry run for a device those of
/// rehearsed.h, and the CPU's, which compute nothing. Throws std::invalid_argument, naming both, where two lie on
/// different devices.
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
