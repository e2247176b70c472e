#pragma once

#include <cstdint>
#include <string>

#include "shard/engine.h"

namespace trainyard::train {

/// A step whose loss or gradients are not finite.
struct NotFiniteStep {
  int64_t step = 0;
  double loss = 0, grad_norm = 0;
  Tensor gradient_squares;  ///< this rank's: of_each of Engine::gradient_squares()
};

/// Collective. Finds the first tensor over all ranks that is not finite, parameters before gradients, each in the order
/// of the model, and throws NotFiniteError naming it, the step and `advice`, the same on every rank.
[[noreturn]] void throw_not_finite(comm::Communicator& world, const shard::Engine& engine, const NotFiniteStep& step,
                                   const std::string& advice);

/// The same of a loss without a step: `what` is whose it is, and there are no gradients to look at.
[[noreturn]] void throw_not_finite(comm::Communicator& world, const shard::Engine& engine, const std::string& what,
                                   double loss);

}  // namespace trainyard::train
