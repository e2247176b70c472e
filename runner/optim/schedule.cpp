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

/// The rate at a step of the warm-up.
double warming(const Schedule& schedule, int64_t step) {
  const double begin = schedule.peak * schedule.warmup_min_ratio, rise = schedule.peak * (1 - schedule.warmup_min_ratio);
  const auto steps = static_cast<double>(schedule.warmup_steps);
  if (schedule.warmup_shape == config::WarmupShape::Logarithm)
    return begin + rise * std::log(static_cast<double>(step + 1)) / std::log(std::max(steps, 2.0));
  return begin + rise * static_cast<double>(schedule.warmup_from_zero ? step : step + 1) / steps;
}

}  // namespace

double Schedule::at(int64_t step) const {
  const int64_t late = lags ? std::max(step - 1, int64_t{0}) : step;
  if (late < warmup_steps) return warming(*this, late);
  const int64_t into_decay = (decay == config::Decay::Cosine ? step : late) - warmup_steps - stable_steps;
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
  const int64_t least = o.schedule_lags ? 2 : 0;  // as DeepSpeed has it
  return {.peak = o.lr,
          .warmup_steps = std::max({o.warmup_steps, share, least}),
          .stable_steps = o.stable_steps,
          .total_steps = total_steps,
          .decay = o.decay,
          .min_ratio = o.min_lr_ratio,
          .warmup_from_zero = o.warmup_from_zero,
          .warmup_shape = o.warmup_shape,
          .warmup_min_ratio = o.warmup_min_ratio,
          .lags = o.schedule_lags};
}

}  // namespace trainyard::optim
