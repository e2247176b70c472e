#pragma once

#include <algorithm>
#include <cstdint>

namespace trainyard {

/// Rows [begin, begin + count) of dim 0, or elements of a flat tensor.
struct Rows {
  int64_t begin = 0, count = 0;
  bool operator==(const Rows&) const = default;
};

/// The rows that rank `rank` of `world` holds of `rows`, split as torch.chunk does: ceil(rows / world) a rank, the last
/// ranks short or empty.
inline Rows chunk_of(int64_t rows, int world, int rank) {
  const int64_t chunk = (rows + world - 1) / world;
  const int64_t begin = std::min(chunk * rank, rows);
  return {begin, std::min(chunk, rows - begin)};
}

}  // namespace trainyard
