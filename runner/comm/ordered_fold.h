#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "tensor/dtype.h"

namespace trainyard::comm {

/// Reduces the ranks' contributions to one block of elements at a time, in the order of the ranks, so that the result
/// has the same bits whatever carried them: ((c0 + c1) + c2) + …, bfloat16 and float16 kept in float32 and rounded once
/// at the end. A block is small enough to stay in the L1 cache between contributions. Whole numbers wrap around.
///
/// The last contribution may be read from the memory that the result is written to; earlier ones may lie there too, as
/// the result is written when the last one is added. Not for several threads.
class OrderedFold {
 public:
  static constexpr size_t kBlockElements = 4096;

  OrderedFold(DType dtype, ReduceOp op, int contributions);

  /// Adds elements [begin, begin + count) of a block from contribution `index`, which must be there for indices below
  /// already. `from` points at the first of them; the last contribution writes the result to `into`, which does too.
  void add(int index, size_t begin, size_t count, const std::byte* from, std::byte* into);

 private:
  using First = void (*)(std::byte* scratch, const std::byte* from, size_t count);
  using Middle = void (*)(std::byte* scratch, const std::byte* from, size_t count);
  using Last = void (*)(std::byte* into, const std::byte* scratch, const std::byte* from, size_t count);
  template <typename T, typename Kept>
  void choose(ReduceOp op);

  int last_;
  size_t kept_size_ = 0;
  First first_ = nullptr;
  Middle middle_ = nullptr;
  Last final_ = nullptr;
  std::unique_ptr<std::byte[]> scratch_;
};

/// Reduces whole buffers that are all in memory: `into` gets the fold of `from[0]`, `from[1]`, … (at least two).
void fold(DType dtype, ReduceOp op, const std::vector<const std::byte*>& from, std::byte* into, size_t count);

}  // namespace trainyard::comm
