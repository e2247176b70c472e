#include "data/batch.h"

#include <algorithm>

namespace trainyard::data {

Tensor document_starts(const Tensor& position_ids) {
  Tensor starts = Tensor::empty(position_ids.shape(), DType::Int32);
  const auto positions = position_ids.values<int32_t>();
  const auto out = starts.values<int32_t>();
  const int64_t tokens = position_ids.size(1);
  for (int64_t i = 0; i < position_ids.count(); ++i) {
    const auto index = static_cast<int32_t>(i % tokens);
    const bool begins = index == 0 || positions[static_cast<size_t>(i)] == 0;
    out[static_cast<size_t>(i)] = begins ? index : out[static_cast<size_t>(i - 1)];
  }
  return starts;
}

int64_t count_valid(const Tensor& targets) {
  if (targets.count() == 0) return 0;
  return std::ranges::count_if(targets.values<int32_t>(), [](int32_t target) { return target != kIgnored; });
}

}  // namespace trainyard::data
