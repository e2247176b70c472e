#include "models/model.h"

namespace trainyard::models {

nn::DropoutContext Model::dropout_of(double rate, const Inputs& inputs, const Pass& pass) {
  if (!pass.dropout_seed || rate == 0) return {};
  return {static_cast<float>(rate), *pass.dropout_seed, inputs.sequences};
}

}  // namespace trainyard::models
