#pragma once

#include <cstdint>
#include <memory>

#include "trainyard/export.h"
#include "trainyard/model.h"

namespace trainyard::fsdp {

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;  ///< of parameters with two or more dimensions; 0: Adam
};

struct OptimizerState;

/// AdamW on this rank's rows: its moments are float32 and sharded as the parameters are. Made after fully_shard() of the
/// whole model, which it keeps alive. Copies share it.
class TRAINYARD_EXPORT AdamW {
 public:
  explicit AdamW(const Model& model, const AdamWOptions& options = {});

  /// Throws std::logic_error where there are no gradients.
  void step();
  void zero_grad();
  void set_lr(double lr);
  /// Steps done, of a loaded checkpoint too.
  [[nodiscard]] std::int64_t steps_done() const;

  [[nodiscard]] const std::shared_ptr<OptimizerState>& state() const { return state_; }

 private:
  std::shared_ptr<OptimizerState> state_;
};

/// The norm of all gradients together, as on a single device; where it is above `max_norm` they are scaled down to it.
/// Collective.
TRAINYARD_EXPORT double clip_grad_norm(const Model& model, double max_norm);

}  // namespace trainyard::fsdp
