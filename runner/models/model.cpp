#include "models/model.h"

namespace trainyard::models {

nn::DropoutContext Model::dropout_of(double rate, const Batch& batch, const Pass& pass) const {
  if (!pass.dropout_seed || rate == 0) return {};
  return {static_cast<float>(rate), *pass.dropout_seed,
          on_device(Tensor::from<int64_t>(batch.sequences, {static_cast<int64_t>(batch.sequences.size())}), device())};
}

}  // namespace trainyard::models
