#pragma once

#include "ops/cpu/kernels.h"
#include "ops/cpu/parallel.h"
#include "tensor/tensor.h"

namespace trainyard::ops::cpu {

/// Σ over `rows`, [width] float32, of what body(begin, end, sums) adds to `sums` for the rows from begin to end. Blocks
/// of at least `grain` rows, then the blocks in order: the same for any number of threads. At most kBlocks partial
/// sums, so that they stay small beside the rows.
template <typename Body>
Tensor row_sums(int64_t rows, int64_t grain, int64_t width, const Body& body) {
  constexpr int64_t kBlocks = 32;
  const int64_t block_rows = std::max((rows + kBlocks - 1) / kBlocks, grain);
  const int64_t blocks = std::max<int64_t>((rows + block_rows - 1) / block_rows, 1);
  Tensor partial = Tensor::zeros({blocks, width}, DType::Float32);
  parallel_for(blocks, 1, [&, sums = partial.data<float>()](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block)
      body(block * block_rows, std::min((block + 1) * block_rows, rows), sums + block * width);
  });
  Tensor total = partial.rows(0, 1);
  for (int64_t block = 1; block < blocks; ++block) add_to(total, partial.rows(block, 1));
  return total.reshape({width});
}

}  // namespace trainyard::ops::cpu
