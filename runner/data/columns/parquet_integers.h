#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

// How Parquet packs integers (github.com/apache/parquet-format, Encodings.md). All throw Damage where the bytes end
// before the integers do. Their memory does not grow with the number of integers, which a few bytes may make any.
namespace trainyard::data::parquet {

/// Integers that follow one another: one again and again, or each in `width` bits of `packed`, the lowest first.
struct Run {
  uint64_t length = 0;
  uint32_t repeated = 0;
  unsigned width = 0;  ///< 0: repeated
  std::string_view packed = {};

  [[nodiscard]] uint32_t at(uint64_t i) const;
};

/// Levels and indices: the hybrid of runs and of packed integers.
class HybridRuns {
 public:
  /// Throws Damage for a width of more than 32 bits.
  HybridRuns(std::string_view bytes, unsigned width);

  /// None is empty.
  Run next();

 private:
  Run packed(uint64_t groups);

  std::string_view rest_;
  unsigned width_;
};

/// The integers of such runs, one after another.
class HybridValues {
 public:
  /// Throws Damage for a width of more than 32 bits.
  HybridValues(std::string_view bytes, unsigned width) : runs_(bytes, width) {}

  uint32_t next() {
    if (at_ == run_.length) run_ = runs_.next(), at_ = 0;
    return run_.at(at_++);
  }

 private:
  HybridRuns runs_;
  Run run_{};
  uint64_t at_ = 0;
};

/// The number of the first of `count` levels that is 0, which is a null's; none where all are 1.
std::optional<int64_t> first_null(std::string_view levels, int64_t count);

/// Lengths as DELTA_BINARY_PACKED: each is told by its difference to the one before.
class DeltaLengths {
 public:
  /// Takes `count` lengths off the beginning of `bytes`. Throws Damage where there are more or fewer.
  DeltaLengths(std::string_view& bytes, int64_t count);

  /// Call it no more than count times. Throws Damage for a negative length.
  size_t next();

 private:
  void start_miniblock();

  std::string_view rest_;
  uint64_t miniblocks_ = 0;        ///< of a block
  uint64_t miniblock_values_ = 0;
  std::string_view widths_ = {};   ///< of the block's miniblocks that have not begun
  uint32_t smallest_ = 0;          ///< of the block's differences
  std::string_view packed_ = {};   ///< of the miniblock, differences less the smallest
  unsigned width_ = 0;
  uint64_t at_ = 0;                ///< in the miniblock
  uint32_t length_ = 0;            ///< the next one's, modulo 2^32
  bool is_first_ = true;
};

}  // namespace trainyard::data::parquet
