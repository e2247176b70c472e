#pragma once

#include <vector>

#include "config/config.h"
#include "shard/engine.h"

namespace trainyard::optim {

/// AdamW (Loshchilov & Hutter 2019) on this rank's shards, its moments sharded alike. Weight decay is for
/// config::Optimizer::decayed_parameters. Keeps a reference to the engine's shards.
class AdamW {
 public:
  AdamW(const shard::Engine& engine, const config::Optimizer& settings);

  /// One update of every shard from its gradient times `gradient_scale`, which is as ops::AdamWStep's: NaN changes
  /// nothing.
  void step(double lr, const Tensor& gradient_scale);

  /// First and second moments of one parameter's rows: the shard's shape, of config::Optimizer::state_dtype.
  struct Moments {
    const shard::ParameterShard* shard;
    uint64_t number;  ///< among the engine's shards(), the same at any number of ranks: the seed of its rounding
    Tensor first, second;
    int64_t started = 0;  ///< steps_done() when this parameter was first trained: its t counts from there
  };
  [[nodiscard]] std::vector<Moments>& moments() { return moments_; }
  /// Updates done: t of the bias correction of what is trained from the start.
  [[nodiscard]] int64_t steps_done() const { return steps_done_; }
  void set_steps_done(int64_t steps) { steps_done_ = steps; }

 private:
  [[nodiscard]] bool is_decayed(const Shape& shape) const;

  config::Optimizer settings_;
  std::vector<Moments> moments_;
  int64_t steps_done_ = 0;
};

}  // namespace trainyard::optim
