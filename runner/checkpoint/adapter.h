#pragma once

#include <memory>
#include <string>

#include "checkpoint/open_weights.h"

namespace trainyard::checkpoint {

/// What PEFT puts before the names of a model's tensors in an adapter's file.
inline constexpr const char* kPeftPrefix = "base_model.model.";

/// alpha / r, or alpha / √r with use_rslora. Throws InputError for what makes more of the adapters than scale · B · A
/// (DoRA, biases, whole modules, alphas of single layers).
double scale_of(const StoredAdapter& adapter);

/// The name under which the adapters have the tensor `name` of a model, whether or not it is there.
std::string stored_name(const StoredAdapter& adapter, const std::string& name);

/// `base` with the adapters added: each adapted weight is W + scale · B · A, as PEFT's merge_and_unload() has it.
/// Throws InputError as scale_of() does, and for an adapter without its other half, or of a weight that the base has
/// not or has in another shape.
std::unique_ptr<Weights> merged(std::unique_ptr<Weights> base, StoredAdapter adapter);

}  // namespace trainyard::checkpoint
