#pragma once

#include <functional>

#include "ops/cross_entropy.h"

// What linear_cross_entropy() is on every device; a device adds its softmax.
namespace trainyard::ops {

/// Takes the logits [rows, vocab] of the tokens `ids` [rows], each on h's device, and keeps their losses. `dlogits`, of
/// h's dtype, takes their gradients and may be `logits`; null: none are wanted. In a dry run the logits may not have
/// the type that the device's have.
using ChunkSoftmax = std::function<void(const Tensor& ids, Tensor& logits, Tensor* dlogits)>;

/// Computes the logits of the tokens that count, some at a time, hands them to `softmax`, and makes dh and dw of what
/// it leaves. `gradients` null: the loss alone.
void for_head_chunks(const Tensor& h, const Tensor& w, const Targets& targets, LossGradients* gradients,
                     const ChunkSoftmax& softmax);

}  // namespace trainyard::ops
