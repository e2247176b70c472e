#pragma once

#include <vector>

#include "ops/attention.h"

namespace trainyard::ops {

/// Some rows of the batch, and some KV heads with the query heads that share them.
struct AttentionSlice {
  int64_t first_row, rows;
  int64_t first_kv_head, kv_heads;
};

/// All of the work in slices, of which a tokens × tokens matrix of 2-byte elements for each head takes at most
/// `most_bytes`, unless one KV head's take more: whole rows, or heads of one row.
std::vector<AttentionSlice> attention_slices(const AttentionShape& shape, int64_t most_bytes);

/// What the matrices of one slice may take on a device with so much memory.
constexpr int64_t most_matrix_bytes(size_t device_memory) {
  return static_cast<int64_t>(device_memory / 64);
}

}  // namespace trainyard::ops
