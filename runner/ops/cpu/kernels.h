#pragma once

#include "ops/activation.h"
#include "ops/adamw.h"
#include "ops/attention.h"
#include "ops/cross_entropy.h"
#include "ops/dropout.h"
#include "ops/float8.h"
#include "ops/image.h"
#include "ops/layer_norm.h"
#include "ops/matmul.h"
#include "ops/nf4.h"
#include "ops/norm.h"
#include "ops/rms_norm.h"
#include "ops/rms_norm_rope.h"
#include "ops/vocabulary_parts.h"

// The CPU's kernels.
namespace trainyard::ops::cpu {

#define TRAINYARD_KERNEL(result, name, arguments, scratch) result name arguments;
#include "ops/kernel_list.inc"

// What makes a packed matrix in NF4, which is made on the host alone (ops/nf4.h).
void nf4_encode(const Tensor& values, Tensor& packed, Tensor& most);
void nf4_scales(const Tensor& most, Nf4Scales& made);
void nf4_scale(const Tensor& most, const Nf4Scales& scales, int64_t first_row, Tensor& packed);

/// `tensor` itself where it is float32, else a converted copy.
Tensor in_float(const Tensor& tensor);

}  // namespace trainyard::ops::cpu
