#pragma once

#include <string>
#include <vector>

#include "config/load.h"
#include "models/model.h"
#include "tensor/device.h"

namespace trainyard::train {

/// Which linear layers are computed in 8 bits, and how.
struct Float8Layers {
  autograd::Float8Recipe recipe = autograd::Float8Recipe::Tensorwise;
  std::vector<std::string> filter_fqns = {};  ///< layers with one of these in their name are not
};

/// What became of a model's linear layers.
struct Float8Model {
  int64_t converted = 0;
  std::vector<std::string> others;  ///< names of those that are as they were
};

/// Marks the linear layers of the model's blocks whose sizes are multiples of 16; what is outside of the blocks, such
/// as the head, stays as it is. Throws InputError for a filter that no linear layer's name holds, and where none is
/// left.
Float8Model convert_to_float8(models::Model& model, const Float8Layers& wanted);

/// "196 of 197 linear layers; not lm_head".
std::string described(const Float8Model& model);

/// Throws InputError where float8.recipe asks for what a CUDA device of these properties has no units for.
void check_float8(const config::Loaded& loaded, const DeviceProperties& device);

}  // namespace trainyard::train
