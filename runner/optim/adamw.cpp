#include "optim/adamw.h"

#include <algorithm>

#include "ops/adamw.h"

namespace trainyard::optim {

AdamW::AdamW(const shard::Engine& engine, const config::Optimizer& settings) : settings_(settings) {
  const MemoryKindScope scope(MemoryKind::Optimizer);
  const bool are_half = settings.state_dtype == config::StatePrecision::BFloat16;
  uint64_t number = 0;
  for (const shard::ParameterShard& shard : engine.shards()) {
    ++number;
    if (shard.parameter->is_frozen()) continue;
    const auto zeros = [&] {
      return Tensor::zeros(shard.value.shape(), are_half ? DType::BFloat16 : DType::Float32, shard.value.device());
    };
    moments_.push_back({&shard, number, zeros(), zeros()});
  }
}

bool AdamW::is_decayed(const Shape& shape) const {
  return settings_.decayed_parameters == config::DecayedParameters::All || shape.size() >= 2;
}

void AdamW::step(double lr, const Tensor& gradient_scale) {
  ++steps_done_;
  std::vector<ops::AdamWTensor> tensors;
  for (const Moments& moments : moments_) {
    const Shape& shape = moments.shard->parameter->shape();
    const autograd::Part& part = moments.shard->parameter->part();
    const int64_t first_row = moments.shard->rows.begin + (part.dimension == 0 ? part.begin : 0);
    tensors.push_back({.param = moments.shard->value,
                       .grad = moments.shard->gradient,
                       .m = moments.first,
                       .v = moments.second,
                       .weight_decay = is_decayed(shape) ? settings_.weight_decay : 0,
                       .step = steps_done_ - moments.started,
                       .seed = moments.number,
                       .first_element = first_row * (count_of(shape) / std::max<int64_t>(shape[0], 1))});
  }
  ops::adamw_step(tensors, {.lr = lr,
                            .beta1 = settings_.betas[0],
                            .beta2 = settings_.betas[1],
                            .eps = settings_.eps,
                            .grad_scale = gradient_scale});
}

}  // namespace trainyard::optim
