#pragma once

#include <span>

#include "tensor/tensor.h"

namespace trainyard::ops {

/// Float64, on the tensors' device.
struct SquareSums {
  Tensor of_each;  ///< [tensors]: Σ x², NaN or infinite where an element is
  Tensor total;    ///< [1]
};

/// Σ x² of float32, bfloat16 or float16 tensors, at least one and all of one dtype and on one device, added up in
/// double block by block: the same for any number of threads. On a device nothing is waited for. Throws
/// std::invalid_argument for another dtype; so does all_finite.
SquareSums sums_of_squares(std::span<const Tensor> tensors);

/// What gradients are multiplied by so that their global L2 norm is at most `limit`, as
/// torch.nn.utils.clip_grad_norm_: min(1, limit / (norm + 1e-6)), for a limit of 0 1. They are those of a loss that was
/// multiplied by `loss_scale`, which is taken out again. NaN where the norm is not finite.
///   squares  float64 [ranks, any]: in the first column what each rank's gradients add to norm² · loss_scale²
/// Float32 [1] where `squares` are, where nothing is waited for.
Tensor clip_factor(const Tensor& squares, double limit, double loss_scale = 1);

/// True if no element is NaN or infinite.
bool all_finite(const Tensor& x);

}  // namespace trainyard::ops
