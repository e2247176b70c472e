#include "optim/loss_scaler.h"

#include <cmath>

namespace trainyard::optim {

namespace {

/// Below it scaling would do the reverse of what it is for; DeepSpeed's min_loss_scale.
constexpr double kLeastScale = 1;

}  // namespace

bool LossScaler::can_back_off() const {
  return settings_.kind == LossScaling::Kind::Dynamic && state_.scale * settings_.backoff_factor >= kLeastScale;
}

void LossScaler::update(bool overflowed) {
  if (settings_.kind != LossScaling::Kind::Dynamic) return;
  if (overflowed) {
    state_ = {state_.scale * settings_.backoff_factor, 0};
    return;
  }
  if (++state_.growth_tracker < settings_.growth_interval) return;
  const double grown = state_.scale * settings_.growth_factor;
  state_ = {std::isfinite(static_cast<float>(grown)) ? grown : state_.scale, 0};
}

void LossScaler::load_state(const State& state) {
  if (settings_.kind == LossScaling::Kind::Dynamic) state_ = state;
}

}  // namespace trainyard::optim
