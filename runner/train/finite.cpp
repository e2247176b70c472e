#include "train/finite.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "assemble/exchange.h"
#include "base/error.h"
#include "ops/norm.h"

namespace trainyard::train {
namespace {

/// The number in the order of shards(), values first, then gradients, of which `squares` tells if there are any; how
/// many there are where all are finite. What is in NF4 was finite when it was packed.
size_t first_bad(const std::vector<shard::ParameterShard>& shards, const Tensor& squares) {
  for (size_t i = 0; i < shards.size(); ++i)
    if (!shards[i].parameter->is_nf4() && !ops::all_finite(shards[i].value)) return i;
  if (!squares.defined()) return 2 * shards.size();
  const Tensor here = on_device(squares, {});
  const double* of_next = here.data<double>();
  for (size_t i = 0; i < shards.size(); ++i)
    if (shards[i].gradient.defined() && !std::isfinite(*of_next++)) return shards.size() + i;
  return 2 * shards.size();
}

/// Collective. Gradients are looked at where their `squares` are defined.
std::string first_bad_tensor(comm::Communicator& world, const shard::Engine& engine, const Tensor& squares) {
  const auto& shards = engine.shards();
  const GatheredScalars answers(world, std::array{static_cast<double>(first_bad(shards, squares))}, "first bad tensor");
  const auto index = static_cast<size_t>(answers.min(0));
  if (index < 2 * shards.size())
    return fmt::format("the first bad tensor is {}{}", index < shards.size() ? "" : "the gradient of ",
                       shards[index % shards.size()].parameter->name());
  return fmt::format("every parameter {}is finite, so it came about in the loss",
                     squares.defined() ? "and gradient " : "");
}

/// The sign of a NaN means nothing, and "-nan" reads as if it did.
double without_sign(double value) {
  return std::isnan(value) ? std::abs(value) : value;
}

}  // namespace

void throw_not_finite(comm::Communicator& world, const shard::Engine& engine, const NotFiniteStep& step,
                      const std::string& advice) {
  throw NotFiniteError(fmt::format("step {}: loss {}, gradient norm {}: {}; {}", step.step, without_sign(step.loss),
                                   without_sign(step.grad_norm), first_bad_tensor(world, engine, step.gradient_squares),
                                   advice));
}

void throw_not_finite(comm::Communicator& world, const shard::Engine& engine, const std::string& what, double loss) {
  throw NotFiniteError(fmt::format("{}: loss {}: {}", what, without_sign(loss), first_bad_tensor(world, engine, {})));
}

}  // namespace trainyard::train
