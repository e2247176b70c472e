#include "data/columns/parquet_integers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "data/columns/damage.h"
#include "data/columns/taking.h"

namespace trainyard::data::parquet {
namespace {

/// Integer `i` of those that `packed` has in `width` bits each, 0 to 32, if it has so many.
uint32_t unpacked(std::string_view packed, uint64_t i, unsigned width) {
  const uint64_t bit = i * width;
  const std::string_view from = packed.substr(bit / 8, sizeof(uint64_t));
  uint64_t word = 0;
  std::memcpy(&word, from.data(), from.size());
  return static_cast<uint32_t>(word >> bit % 8 & ((uint64_t{1} << width) - 1));
}

}  // namespace

uint32_t Run::at(uint64_t i) const {
  return width == 0 ? repeated : unpacked(packed, i, width);
}

HybridRuns::HybridRuns(std::string_view bytes, unsigned width) : rest_(bytes), width_(width) {
  if (width > 32) throw Damage(fmt::format("its indices have {} bits", width));
}

Run HybridRuns::next() {
  for (;;) {
    const uint64_t header = take_varint(rest_), length = header >> 1;
    const bool is_packed = header & 1;
    if (is_packed && length > 0) return packed(length);
    if (is_packed) continue;
    const uint32_t value = take_integer(rest_, (width_ + 7) / 8);
    if (uint64_t{value} >> width_ != 0) throw Damage(fmt::format("the index {} has more than {} bits", value, width_));
    if (length > 0) return {.length = length, .repeated = value};
  }
}

Run HybridRuns::packed(uint64_t groups) {
  if (width_ == 0) return {.length = std::min(groups, uint64_t{1} << 32) * 8};
  // A group is 8 integers, but some writers leave out the end of the last.
  const uint64_t bytes = std::min<uint64_t>(rest_.size(), groups > rest_.size() ? rest_.size() : groups * width_);
  const Run run{.length = bytes * 8 / width_, .width = width_, .packed = take(rest_, bytes)};
  if (run.length == 0) throw Damage("its indices end inside a group");
  return run;
}

std::optional<int64_t> first_null(std::string_view levels, int64_t count) {
  HybridRuns runs(levels, 1);
  for (int64_t seen = 0; seen < count;) {
    const Run run = runs.next();
    const auto length = static_cast<int64_t>(std::min(run.length, static_cast<uint64_t>(count - seen)));
    const int64_t looked_at = run.width == 0 ? 1 : length;
    for (int64_t i = 0; i < looked_at; ++i)
      if (run.at(static_cast<uint64_t>(i)) == 0) return seen + i;
    seen += length;
  }
  return std::nullopt;
}

DeltaLengths::DeltaLengths(std::string_view& bytes, int64_t count) {
  const uint64_t block_values = take_varint(bytes);
  miniblocks_ = take_varint(bytes);
  const uint64_t total = take_varint(bytes);
  length_ = static_cast<uint32_t>(take_zigzag(bytes));
  if (!std::in_range<int32_t>(block_values) || miniblocks_ == 0 || block_values % miniblocks_ != 0 ||
      block_values / miniblocks_ % 8 != 0 || block_values == 0)
    throw Damage(fmt::format("it has lengths in blocks of {} in {} parts", block_values, miniblocks_));
  if (std::cmp_not_equal(total, count)) throw Damage(fmt::format("it has {} lengths for {} values", total, count));
  miniblock_values_ = at_ = block_values / miniblocks_;
  rest_ = bytes;
  // What comes after the lengths begins where they end, which only their blocks tell.
  DeltaLengths ahead = *this;
  for (uint64_t begun = 1; begun < total; begun += miniblock_values_) ahead.start_miniblock();
  bytes = ahead.rest_;
}

void DeltaLengths::start_miniblock() {
  if (widths_.empty()) {
    smallest_ = static_cast<uint32_t>(take_zigzag(rest_));
    widths_ = take(rest_, miniblocks_);
  }
  width_ = take_byte(widths_);
  if (width_ > 32) throw Damage(fmt::format("it has lengths of {} bits", width_));
  packed_ = take(rest_, width_ * miniblock_values_ / 8);
  at_ = 0;
}

size_t DeltaLengths::next() {
  if (!std::exchange(is_first_, false)) {
    if (at_ == miniblock_values_) start_miniblock();
    length_ += smallest_ + unpacked(packed_, at_++, width_);
  }
  if (!std::in_range<int32_t>(length_)) throw Damage(fmt::format("a length is {}", static_cast<int32_t>(length_)));
  return length_;
}

}  // namespace trainyard::data::parquet
