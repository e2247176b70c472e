#include "data/mixture.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace trainyard::data {

Mixture::Mixture(std::vector<int64_t> weights) : weights_(std::move(weights)) {
  int64_t total = 0;
  for (const int64_t weight : weights_) {
    if (weight < 1 || weight > kMostDraws - total)
      throw std::invalid_argument(fmt::format("Mixture: weight {} after a sum of {}", weight, total));
    total += weight;
  }
  // Smooth weighted round-robin: every source gains its weight, the one with most is drawn and pays for all.
  std::vector<int64_t> gained(weights_.size()), drawn(weights_.size());
  cycle_.reserve(static_cast<size_t>(total));
  for (int64_t draw = 0; draw < total; ++draw) {
    for (size_t source = 0; source < weights_.size(); ++source) gained[source] += weights_[source];
    const auto next = static_cast<size_t>(std::ranges::max_element(gained) - gained.begin());
    gained[next] -= total;
    cycle_.push_back({next, drawn[next]++});
  }
}

Mixture::Draw Mixture::at(int64_t draw) const {
  const auto total = std::ssize(cycle_);
  const Draw& first = cycle_[static_cast<size_t>(draw % total)];
  return {first.source, draw / total * weights_[first.source] + first.index};
}

}  // namespace trainyard::data
