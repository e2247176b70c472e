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

/// In the order of shards(), values first, then gradients; their number where all are finite.
size_t first_bad(const std::vector<shard::ParameterShard>& shards) {
  for (size_t i = 0; i < shards.size(); ++i)
    if (!ops::all_finite(shards[i].value)) return i;
  for (size_t i = 0; i < shards.size(); ++i)
    if (!shards[i].parameter->is_frozen() && !ops::all_finite(shards[i].gradient)) return shards.size() + i;
  return 2 * shards.size();
}

/// The sign of a NaN means nothing, and "-nan" reads as if it did.
double without_sign(double value) {
  return std::isnan(value) ? std::abs(value) : value;
}

}  // namespace

void throw_not_finite(comm::Communicator& world, const shard::Engine& engine, int64_t step, double loss,
                      double grad_norm, const std::string& advice) {
  const auto& shards = engine.shards();
  const Answers answers(world, std::array{static_cast<double>(first_bad(shards))}, "first bad tensor");
  const auto index = static_cast<size_t>(answers.min(0));
  std::string bad = "every parameter and gradient is finite, so it came about in the loss";
  if (index < 2 * shards.size())
    bad = fmt::format("the first bad tensor is {}{}", index < shards.size() ? "" : "the gradient of ",
                      shards[index % shards.size()].parameter->name());
  throw NotFiniteError(fmt::format("step {}: loss {}, gradient norm {}: {}; {}", step, without_sign(loss),
                                   without_sign(grad_norm), bad, advice));
}

}  // namespace trainyard::train
