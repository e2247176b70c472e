#include "data/batch.h"

#include <algorithm>

namespace trainyard::data {

int64_t count_valid(const Tensor& targets) {
  if (targets.count() == 0) return 0;
  return std::ranges::count_if(targets.values<int32_t>(), [](int32_t target) { return target != kIgnored; });
}

}  // namespace trainyard::data
