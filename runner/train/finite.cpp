#include "train/finite.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "ops/norm.h"
#include "train/exchange.h"

namespace trainyard::train {
namespace {

enum class Among { Parameters, ParametersAndGradients };

/// In the order of shards(), values first, then gradients; their number where all are finite.
size_t first_bad(const std::vector<shard::ParameterShard>& shards, Among among) {
  for (size_t i = 0; i < shards.size(); ++i)
    if (!ops::all_finite(shards[i].value)) return i;
  for (size_t i = 0; i < shards.size() && among == Among::ParametersAndGradients; ++i)
    if (!shards[i].parameter->is_frozen() && !ops::all_finite(shards[i].gradient)) return shards.size() + i;
  return 2 * shards.size();
}

/// Collective.
std::string first_bad_tensor(comm::Communicator& world, const shard::Engine& engine, Among among) {
  const auto& shards = engine.shards();
  const Answers answers(world, std::array{static_cast<double>(first_bad(shards, among))}, "first bad tensor");
  const auto index = static_cast<size_t>(answers.min(0));
  if (index < 2 * shards.size())
    return fmt::format("the first bad tensor is {}{}", index < shards.size() ? "" : "the gradient of ",
                       shards[index % shards.size()].parameter->name());
  return fmt::format("every parameter {}is finite, so it came about in the loss",
                     among == Among::Parameters ? "" : "and gradient ");
}

/// The sign of a NaN means nothing, and "-nan" reads as if it did.
double without_sign(double value) {
  return std::isnan(value) ? std::abs(value) : value;
}

}  // namespace

void throw_not_finite(comm::Communicator& world, const shard::Engine& engine, int64_t step, double loss,
                      double grad_norm, const std::string& advice) {
  throw NotFiniteError(fmt::format("step {}: loss {}, gradient norm {}: {}; {}", step, without_sign(loss),
                                   without_sign(grad_norm),
                                   first_bad_tensor(world, engine, Among::ParametersAndGradients), advice));
}

void throw_not_finite(comm::Communicator& world, const shard::Engine& engine, const std::string& what, double loss) {
  throw NotFiniteError(
      fmt::format("{}: loss {}: {}", what, without_sign(loss), first_bad_tensor(world, engine, Among::Parameters)));
}

}  // namespace trainyard::train
