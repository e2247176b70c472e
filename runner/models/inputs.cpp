#include "models/inputs.h"

#include <algorithm>
#include <array>

namespace trainyard::models {
namespace {

/// What loss() reads where it computes, undefined where the batch lacks it.
std::array<Tensor, 10> parts_of(const Inputs& inputs) {
  const Device device = inputs.sequences.device();
  const bool has_targets = inputs.targets.values().defined();
  return {inputs.input_ids,
          inputs.position_ids,
          inputs.document_starts,
          inputs.input_lengths,
          inputs.features,
          inputs.sequences,
          inputs.decoder_input_ids,
          inputs.whole.document_starts,
          has_targets ? inputs.targets.values_on(device) : Tensor(),
          has_targets ? inputs.targets.valid_on(device) : Tensor()};
}

bool are_same(const Tensor& a, const Tensor& b) {
  return std::ranges::equal(a.values<int32_t>(), b.values<int32_t>());
}

}  // namespace

Inputs::Inputs(const data::Batch& batch, Device device) : valid_tokens(batch.valid_tokens) {
  const auto there = [device](const Tensor& tensor) { return tensor.defined() ? on_device(tensor, device) : tensor; };
  input_ids = there(batch.input_ids);
  position_ids = there(batch.position_ids);
  whole = {batch.whole.tokens, there(batch.whole.document_starts), there(batch.whole.own_document_starts)};
  if (whole.tokens > 0) {
    document_starts = whole.own_document_starts;
  } else if (batch.position_ids.defined()) {
    document_starts = there(data::document_starts(batch.position_ids).reshape({batch.position_ids.count()}));
  }
  input_lengths = there(batch.input_lengths);
  features = there(batch.features);
  sequences = there(Tensor::from<int64_t>(batch.sequences, {std::ssize(batch.sequences)}));
  if (batch.targets.defined()) targets = {batch.targets.reshape({batch.targets.count()}), device};
}

bool Inputs::is_like(const Inputs& other) const {
  const auto have_one_shape = [](const Tensor& a, const Tensor& b) {
    return a.defined() == b.defined() && a.shape() == b.shape() && a.device() == b.device();
  };
  return whole.tokens == other.whole.tokens && std::ranges::equal(parts_of(*this), parts_of(other), have_one_shape) &&
         (!targets.valid().defined() || are_same(targets.valid(), other.targets.valid()));
}

void Inputs::copy_values(const Inputs& other) {
  const auto from = parts_of(other);
  auto to = parts_of(*this);
  for (size_t i = 0; i < to.size(); ++i)
    if (to[i].defined()) copy(from[i], to[i]);
}

}  // namespace trainyard::models
