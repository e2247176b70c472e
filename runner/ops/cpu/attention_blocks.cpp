#include "ops/cpu/attention_blocks.h"
#include "ops/dropout_mask.h"

namespace trainyard::ops::cpu {
namespace {

TRAINYARD_MULTIVERSION void drop_values(float* values, DropoutStream stream, DropoutRate rate, Range keys) {
  const auto first = static_cast<uint32_t>(keys.begin);
  const int64_t count = keys.size();
#pragma omp simd
  for (int64_t i = 0; i < count; ++i)
    values[i] *= dropout_bits(stream, first + static_cast<uint32_t>(i)) < rate.threshold ? 0.0F : rate.scale;
}

}  // namespace

TRAINYARD_MULTIVERSION void add_bias(float* scores, const float* bias, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row, --bias, scores += kScoreStride) {
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i) scores[i] += bias[i];
  }
}

TRAINYARD_MULTIVERSION void add_to_bias(const float* gradients, float* bias, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row, --bias, gradients += kScoreStride) {
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i) bias[i] += gradients[i];
  }
}

void BlockDropout::apply(float* values, int64_t row, int64_t head, Range queries, Range keys) const {
  const DropoutRate rate(options_.dropout.rate);
  const int64_t sequence = options_.dropout.sequences.data<int64_t>()[row];
  for (int64_t query = queries.begin; query < queries.end; ++query, values += kScoreStride) {
    const auto token = static_cast<uint64_t>(options_.dropout.first_head + head) << 32U |
                       static_cast<uint64_t>(options_.q_offset + query);
    drop_values(values, DropoutStream(options_.dropout.seed, sequence, token), rate, keys);
  }
}

}  // namespace trainyard::ops::cpu
