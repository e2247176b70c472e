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

void AdamW::step(double lr, const Tensor& gradient_scale) {
  ++steps_done_;
  std::vector<ops::AdamWTensor> tensors;
  for (const Moments& moments : moments_) {
    const bool decays = moments.shard->parameter->shape().size() >= 2;
    tensors.push_back({.param = moments.shard->value,
                       .grad = moments.shard->gradient,
                       .m = moments.first,
                       .v = moments.second,
                       .weight_decay = decays ? settings_.weight_decay : 0,
                       .step = steps_done_ - moments.started});
  }
  ops::adamw_step(tensors, {.lr = lr,
                            .beta1 = settings_.betas[0],
                            .beta2 = settings_.betas[1],
                            .eps = settings_.eps,
                            .grad_scale = gradient_scale});
}

}  // namespace trainyard::optim
