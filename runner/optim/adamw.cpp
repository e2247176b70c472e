#include "optim/adamw.h"

#include "ops/adamw.h"

namespace trainyard::optim {

AdamW::AdamW(const shard::Engine& engine, const config::Optimizer& settings) : settings_(settings) {
  const MemoryKindScope scope(MemoryKind::Optimizer);
  for (const shard::ParameterShard& shard : engine.shards())
    if (!shard.parameter->is_frozen())
      moments_.push_back({&shard, Tensor::zeros(shard.value.shape(), DType::Float32, shard.value.device()),
                          Tensor::zeros(shard.value.shape(), DType::Float32, shard.value.device())});
}

void AdamW::step(double lr, float gradient_scale) {
  ++steps_done_;
  for (Moments& moments : moments_) {
    const bool decays = moments.shard->parameter->shape().size() >= 2;
    Tensor value = moments.shard->value;
    ops::adamw_step(value, moments.shard->gradient, moments.first, moments.second,
                    {.lr = lr,
                     .beta1 = settings_.betas[0],
                     .beta2 = settings_.betas[1],
                     .eps = settings_.eps,
                     .weight_decay = decays ? settings_.weight_decay : 0,
                     .step = steps_done_ - moments.started,
                     .grad_scale = gradient_scale});
  }
}

}  // namespace trainyard::optim
