#include "models/family.h"

#include <algorithm>

namespace trainyard::models {

const StoredNames& stored_names(const ModelConfig& config) {
  return family_of(config).stored;
}

LearnsFrom learns_from(const ModelConfig& config) {
  return family_of(config).learns_from;
}

double flops_per_row(const ModelConfig& c, const RowLengths& lengths) {
  if (const Family& family = family_of(c); family.flops_per_row) return family.flops_per_row(c, lengths);
  const int64_t block =
      2 * c.hidden_size * c.head_dim * (c.heads + c.kv_heads) + 3 * c.hidden_size * c.intermediate_size;
  const int64_t matrices = c.layers * block + c.vocab_size * c.hidden_size;
  int64_t keys = 0;  // that a token sees, over all layers
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    const int64_t window = window_of(c, layer);
    keys += window > 0 ? std::min(window, lengths.tokens) : lengths.tokens;
  }
  return static_cast<double>(lengths.tokens) *
         (6.0 * static_cast<double>(matrices) + 12.0 * static_cast<double>(c.heads * c.head_dim * keys));
}

}  // namespace trainyard::models
