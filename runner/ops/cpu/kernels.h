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
#include "ops/norm.h"
#include "ops/rms_norm.h"
#include "ops/rms_norm_rope.h"
#include "ops/vocabulary_parts.h"

// The CPU's kernels.
namespace trainyard::ops::cpu {

#define TRAINYARD_KERNEL(result, name, arguments, scratch) result name arguments;
#include "ops/kernel_list.inc"

/// `tensor` itself where it is float32, else a converted copy.
Tensor in_float(const Tensor& tensor);

}  // namespace trainyard::ops::cpu
