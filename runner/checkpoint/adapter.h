#pragma once

#include <memory>
#include <string>

#include "checkpoint/open_weights.h"

namespace trainyard::checkpoint {

/// What PEFT puts before the names of a model's tensors in an adapter's file.
inline constexpr const char* kPeftPrefix = "base_model.model.";

/// `base` with the adapters added: each adapted weight is W + scale · B · A, as PEFT's merge_and_unload() has it, with
/// scale = alpha / r, or alpha / √r with use_rslora. Throws InputError for what merging takes more for (DoRA, biases,
/// whole modules, alphas of single layers), and for an adapter without its other half, or of a weight that the base has
/// not or has in another shape.
std::unique_ptr<Weights> merged(std::unique_ptr<Weights> base, StoredAdapter adapter);

}  // namespace trainyard::checkpoint
