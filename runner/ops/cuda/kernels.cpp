#include "ops/cuda/kernels.h"

namespace trainyard::ops {
namespace {

constexpr Kernels kCudaKernels{
    .absmax = cuda::absmax,
    .activation = cuda::activation,
    .activation_backward = cuda::activation_backward,
    .adamw_step = cuda::adamw_step,
    .add = cuda::add,
    .add_bias = cuda::add_bias,
    .add_rms_norm = cuda::add_rms_norm,
    .add_to = cuda::add_to,
    .all_finite = cuda::all_finite,
    .attention = cuda::attention,
    .attention_backward = cuda::attention_backward,
    .bias_backward = cuda::bias_backward,
    .cast = cuda::cast,
    .channels_first = cuda::channels_first,
    .channels_last = cuda::channels_last,
    .clip_factor = cuda::clip_factor,
    .cross_entropy = cuda::cross_entropy,
    .dropout = cuda::dropout,
    .embedding = cuda::embedding,
    .embedding_backward = cuda::embedding_backward,
    .fill = cuda::fill,
    .float8_cast = cuda::float8_cast,
    .float8_matmul = cuda::float8_matmul,
    .float8_scale = cuda::float8_scale,
    .layer_norm = cuda::layer_norm,
    .layer_norm_backward = cuda::layer_norm_backward,
    .linear_cross_entropy = cuda::linear_cross_entropy,
    .matmul = cuda::matmul,
    .max_pool = cuda::max_pool,
    .max_pool_backward = cuda::max_pool_backward,
    .multiply = cuda::multiply,
    .relative_bias = cuda::relative_bias,
    .relative_bias_backward = cuda::relative_bias_backward,
    .rms_norm = cuda::rms_norm,
    .rms_norm_backward = cuda::rms_norm_backward,
    .rms_norm_rope = cuda::rms_norm_rope,
    .rms_norm_rope_backward = cuda::rms_norm_rope_backward,
    .rope = cuda::rope,
    .scale = cuda::scale,
    .set_zero = cuda::set_zero,
    .sum = cuda::sum,
    .sums_of_squares = cuda::sums_of_squares,
    .swiglu = cuda::swiglu,
    .swiglu_backward = cuda::swiglu_backward,
    .unfold = cuda::unfold,
    .unfold_backward = cuda::unfold_backward,
};

}  // namespace

const Kernels* cuda_kernels() {
  return &kCudaKernels;
}

}  // namespace trainyard::ops
