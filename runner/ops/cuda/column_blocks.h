#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/cuda/scratch.h"

namespace trainyard::ops::cuda {

/// How a device sums the rows of a matrix: in blocks of rows, whose sums are then added.
struct ColumnBlocks {
  int64_t rows = 0;   ///< of a block
  int64_t count = 0;  ///< of blocks: 32 at most, as on the CPU, more where columns are few, as a device is filled by
                      ///< some ten thousand threads
};

constexpr ColumnBlocks column_blocks(int64_t rows, int64_t width) {
  if (rows == 0 || width == 0) return {};
  const int64_t wanted = std::clamp<int64_t>((int64_t{1} << 16) / width, 32, 512);
  const int64_t of_block = (rows + wanted - 1) / wanted;
  return {of_block, (rows + of_block - 1) / of_block};
}

/// What each block has of each column.
inline ScratchTensor parts_of(const ColumnBlocks& blocks, int64_t width) {
  return {{blocks.count, width}, DType::Float32};
}

}  // namespace trainyard::ops::cuda
