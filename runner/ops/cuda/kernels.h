#pragma once

#include <type_traits>

#include "ops/kernels.h"

// The kernels of CUDA devices: each has the signature of the CPU's. All run on the current stream of their tensors'
// device; only those that return a value wait for it.
namespace trainyard::ops::cuda {

std::remove_pointer_t<decltype(Kernels::absmax)> absmax;
std::remove_pointer_t<decltype(Kernels::activation)> activation;
std::remove_pointer_t<decltype(Kernels::activation_backward)> activation_backward;
std::remove_pointer_t<decltype(Kernels::adamw_step)> adamw_step;
std::remove_pointer_t<decltype(Kernels::add)> add;
std::remove_pointer_t<decltype(Kernels::add_bias)> add_bias;
std::remove_pointer_t<decltype(Kernels::add_rms_norm)> add_rms_norm;
std::remove_pointer_t<decltype(Kernels::add_to)> add_to;
std::remove_pointer_t<decltype(Kernels::all_finite)> all_finite;
std::remove_pointer_t<decltype(Kernels::attention)> attention;
std::remove_pointer_t<decltype(Kernels::attention_backward)> attention_backward;
std::remove_pointer_t<decltype(Kernels::bias_backward)> bias_backward;
std::remove_pointer_t<decltype(Kernels::cast)> cast;
std::remove_pointer_t<decltype(Kernels::channels_first)> channels_first;
std::remove_pointer_t<decltype(Kernels::channels_last)> channels_last;
std::remove_pointer_t<decltype(Kernels::clip_factor)> clip_factor;
std::remove_pointer_t<decltype(Kernels::cross_entropy)> cross_entropy;
std::remove_pointer_t<decltype(Kernels::dropout)> dropout;
std::remove_pointer_t<decltype(Kernels::embedding)> embedding;
std::remove_pointer_t<decltype(Kernels::embedding_backward)> embedding_backward;
std::remove_pointer_t<decltype(Kernels::fill)> fill;
std::remove_pointer_t<decltype(Kernels::float8_cast)> float8_cast;
std::remove_pointer_t<decltype(Kernels::float8_matmul)> float8_matmul;
std::remove_pointer_t<decltype(Kernels::float8_scale)> float8_scale;
std::remove_pointer_t<decltype(Kernels::layer_norm)> layer_norm;
std::remove_pointer_t<decltype(Kernels::layer_norm_backward)> layer_norm_backward;
std::remove_pointer_t<decltype(Kernels::linear_cross_entropy)> linear_cross_entropy;
std::remove_pointer_t<decltype(Kernels::matmul)> matmul;
std::remove_pointer_t<decltype(Kernels::max_pool)> max_pool;
std::remove_pointer_t<decltype(Kernels::max_pool_backward)> max_pool_backward;
std::remove_pointer_t<decltype(Kernels::multiply)> multiply;
std::remove_pointer_t<decltype(Kernels::relative_bias)> relative_bias;
std::remove_pointer_t<decltype(Kernels::relative_bias_backward)> relative_bias_backward;
std::remove_pointer_t<decltype(Kernels::rms_norm)> rms_norm;
std::remove_pointer_t<decltype(Kernels::rms_norm_backward)> rms_norm_backward;
std::remove_pointer_t<decltype(Kernels::rms_norm_rope)> rms_norm_rope;
std::remove_pointer_t<decltype(Kernels::rms_norm_rope_backward)> rms_norm_rope_backward;
std::remove_pointer_t<decltype(Kernels::rope)> rope;
std::remove_pointer_t<decltype(Kernels::scale)> scale;
std::remove_pointer_t<decltype(Kernels::set_zero)> set_zero;
std::remove_pointer_t<decltype(Kernels::sum)> sum;
std::remove_pointer_t<decltype(Kernels::sums_of_squares)> sums_of_squares;
std::remove_pointer_t<decltype(Kernels::swiglu)> swiglu;
std::remove_pointer_t<decltype(Kernels::swiglu_backward)> swiglu_backward;
std::remove_pointer_t<decltype(Kernels::unfold)> unfold;
std::remove_pointer_t<decltype(Kernels::unfold_backward)> unfold_backward;

}  // namespace trainyard::ops::cuda
