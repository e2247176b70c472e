#include "nn/relative_positions.h"

#include <algorithm>
#include <cmath>

namespace trainyard::nn {

int32_t relative_bucket(int64_t distance, const RelativeBuckets& buckets) {
  const int64_t count = buckets.both_directions ? buckets.count / 2 : buckets.count;
  const int64_t first = buckets.both_directions && distance > 0 ? count : 0;
  const int64_t apart = buckets.both_directions ? std::abs(distance) : std::max<int64_t>(-distance, 0);
  const int64_t exact = count / 2;
  if (apart < exact) return static_cast<int32_t>(first + apart);
  const float steps =
      std::log(static_cast<float>(apart) / static_cast<float>(exact)) /
      static_cast<float>(std::log(static_cast<double>(buckets.max_distance) / static_cast<double>(exact))) *
      static_cast<float>(count - exact);
  return static_cast<int32_t>(first + std::min(exact + static_cast<int64_t>(steps), count - 1));
}

Tensor relative_buckets(int64_t q_offset, int64_t q_tokens, int64_t kv_tokens, const RelativeBuckets& buckets) {
  Tensor all = Tensor::empty({std::max<int64_t>(q_tokens + kv_tokens - 1, 0)}, DType::Int32);
  const auto out = all.values<int32_t>();
  for (int64_t i = 0; i < all.count(); ++i)
    out[static_cast<size_t>(i)] = relative_bucket(i - (q_offset + q_tokens - 1), buckets);
  return all;
}

}  // namespace trainyard::nn
