#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace trainyard::optim {
namespace {

bool is_clamped(config::Decay decay) {
  return decay == config::Decay::ClampedCosine || decay == config::Decay::ClampedLinear;
}

/// What is left of the way down at progress p.
double remaining(config::Decay decay, double p) {
  switch (decay) {
    case config::Decay::Cosine:
    case config::Decay::ClampedCosine:
      return 0.5 * (1 + std::cos(std::numbers::pi * p));
    case config::Decay::Linear:
    case config::Decay::ClampedLinear:
      return 1 - p;
    case config::Decay::Sqrt:
      return 1 - std::sqrt(p);
    case config::Decay::Constant:
      return 1;
  }
  return 1;
}

}  // namespace

double Schedule::at(int64_t step) const {
  if (step < warmup_steps)
    return peak * static_cast<double>(warmup_from_zero ? step : step + 1) / static_cast<double>(warmup_steps);
  const int64_t into_decay = step - warmup_steps - stable_steps;
  if (is_clamped(decay)) {
    const int64_t last = std::max(total_steps - 2 * warmup_steps - stable_steps, int64_t{0});
    const double q = static_cast<double>(std::min(into_decay, last)) / static_cast<double>(std::max(total_steps, int64_t{1}));
    return peak * std::max(min_ratio, remaining(decay, q));
  }
  const int64_t length = total_steps - warmup_steps - stable_steps;
  if (into_decay < 0 || decay == config::Decay::Constant) return peak;
  const double p = length <= 0 ? 1 : std::min(1.0, static_cast<double>(into_decay) / static_cast<double>(length));
  return peak * (min_ratio + (1 - min_ratio) * remaining(decay, p));
}

Schedule schedule_of(const config::Optimizer& o, int64_t total_steps) {
  const int64_t share = std::llrint(std::ceil(static_cast<double>(total_steps) * o.warmup_ratio));
  const int64_t warmup_steps = std::max(o.warmup_steps, share);
  return {o.lr, warmup_steps, o.stable_steps, total_steps, o.decay, o.min_lr_ratio, o.warmup_from_zero};
}

}  // namespace trainyard::optim
