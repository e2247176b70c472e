#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace trainyard::nn {

/// How T5 (Raffel et al. 2020) sorts distances into buckets: exact ones up to half of them, then logarithmically wider
/// ones up to max_distance, and one for all beyond.
struct RelativeBuckets {
  int64_t count = 32, max_distance = 128;
  bool both_directions = false;  ///< half of the buckets for keys after the query; else those are all in bucket 0
};

/// The bucket of a key `distance` = key − query tokens away; the logarithm in float32, as transformers computes it.
int32_t relative_bucket(int64_t distance, const RelativeBuckets& buckets);

/// The bucket of each distance that queries [q_offset, q_offset + q_tokens) and keys [0, kv_tokens) can have, int32
/// [q_tokens + kv_tokens − 1]: in the order of AttentionOptions::bias.
Tensor relative_buckets(int64_t q_offset, int64_t q_tokens, int64_t kv_tokens, const RelativeBuckets& buckets);

}  // namespace trainyard::nn
