#pragma once

#include <cstdint>

#include "autograd/recompute.h"
#include "models/model.h"

namespace trainyard::train {

/// Which blocks of a model compute their forward again in backward, and what they keep for it.
struct Recompute {
  bool is_on = false;
  int64_t every = 1;  ///< every n-th block
  autograd::Retention retention = {};
};

/// Says so to each block.
void set_recompute(models::Model& model, const Recompute& wanted);

}  // namespace trainyard::train
