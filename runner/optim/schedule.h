#pragma once

#include <cstdint>

#include "config/config.h"

namespace trainyard::optim {

/// The learning rate of a step: warm-up, a stable phase, then decay to min_lr_ratio · peak.
struct Schedule {
  double peak = 0;
  int64_t warmup_steps = 0, stable_steps = 0, total_steps = 0;
  config::Decay decay = config::Decay::Constant;
  double min_ratio = 0;
  bool warmup_from_zero = false;
  config::WarmupShape warmup_shape = config::WarmupShape::Linear;
  double warmup_min_ratio = 0;
  bool lags = false;

  /// `step` counts from 0. Warm-up: peak · (m + (1 − m) · g) with m = warmup_min_ratio and
  ///   linear: g = (step + 1) / warmup_steps, or from zero step / warmup_steps
  ///   log: g = log(step + 1) / log(warmup_steps), of which there are two at least.
  /// Then peak for stable_steps. Then, with progress p = (step − warmup − stable) / (total − warmup − stable) in [0, 1) and floor
  /// f = min_ratio, peak times
  ///   cosine: f + (1 − f) · ½(1 + cos πp)    linear: f + (1 − f) · (1 − p)    sqrt: f + (1 − f) · (1 − √p)
  ///   constant: 1.
  /// The clamped ones go down as Megatron-LM's AnnealingLR, with q = (min(step, total − warmup) − warmup − stable) / total:
  ///   clamped_cosine: max(f, ½(1 + cos πq))    clamped_linear: max(f, 1 − q).
  /// Steps past the total stay at the value p = 1.
  /// Where it lags, step s has what is said here of max(s − 1, 0), but for the p of a cosine after the warm-up: so it
  /// is with WarmupLR, WarmupDecayLR and WarmupCosineLR of DeepSpeed, which step once the optimizer has.
  [[nodiscard]] double at(int64_t step) const;
};

Schedule schedule_of(const config::Optimizer& optimizer, int64_t total_steps);

}  // namespace trainyard::optim
