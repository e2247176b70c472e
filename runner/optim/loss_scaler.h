#pragma once

#include <cstdint>

namespace trainyard::optim {

/// How the loss is scaled so that small gradients do not underflow in float16: torch.amp.GradScaler, by its names. As
/// it stands: not at all.
struct LossScaling {
  enum class Kind {
    None,
    Constant,  ///< by init_scale for good: a gradient that overflows is an error
    Dynamic,   ///< by a scale that falls where a gradient overflows, and grows after growth_interval good steps
  } kind = Kind::None;
  double init_scale = 65536;
  double growth_factor = 2, backoff_factor = 0.5;
  int64_t growth_interval = 2000;
};

/// The scale of a run, step by step. All ranks have it alike, as they agree on which steps overflowed.
class LossScaler {
 public:
  explicit LossScaler(const LossScaling& settings = {}) : settings_(settings), state_{settings.init_scale, 0} {}

  [[nodiscard]] bool is_on() const { return settings_.kind != LossScaling::Kind::None; }
  [[nodiscard]] bool is_constant() const { return settings_.kind == LossScaling::Kind::Constant; }
  /// What the loss, and so each gradient, is multiplied by: 1 where nothing is scaled.
  [[nodiscard]] double scale() const { return is_on() ? state_.scale : 1; }
  /// Whether a step that overflowed may be skipped: with a lower scale, of at least 1, the next may succeed.
  [[nodiscard]] bool can_back_off() const;
  /// It is called after each step. `overflowed`: the step was skipped, and can_back_off() is true.
  void update(bool overflowed);

  /// What a resumed run goes on from.
  struct State {
    double scale = 1;
    int64_t growth_tracker = 0;  ///< good steps since the scale last changed
  };
  [[nodiscard]] const State& state() const { return state_; }
  /// It takes the state of a run with dynamic scaling; a run of another kind keeps its own.
  void load_state(const State& state);

 private:
  LossScaling settings_;
  State state_;
};

}  // namespace trainyard::optim
