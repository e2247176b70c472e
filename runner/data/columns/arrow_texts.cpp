#include "data/columns/arrow_texts.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "data/columns/damage.h"

namespace trainyard::data {
namespace {

constexpr size_t kViewBytes = 16, kLongestInView = 12;

size_t bytes_of_places(TextLayout layout, size_t rows) {
  switch (layout) {
    case TextLayout::Offsets32:
      return (rows + 1) * sizeof(int32_t);
    case TextLayout::Offsets64:
      return (rows + 1) * sizeof(int64_t);
    case TextLayout::Views:
      return rows * kViewBytes;
  }
  return 0;
}

/// None where [begin, begin + length) is not in `bytes`.
std::optional<std::string_view> part_of(std::string_view bytes, int64_t begin, int64_t length) {
  const auto size = static_cast<int64_t>(bytes.size());
  if (begin < 0 || length < 0 || begin > size || length > size - begin) return std::nullopt;
  return bytes.substr(static_cast<size_t>(begin), static_cast<size_t>(length));
}

}  // namespace

std::string_view arrow_validity(ArrowBuffers& buffers, size_t node, size_t buffer, size_t rows) {
  if (buffers.node(node).null_count() == 0 || rows == 0) return {};
  const std::string_view bits = buffers.buffer(buffer);
  if (bits.size() < (rows + 7) / 8) throw Damage("a batch has fewer bits of validity than rows");
  return bits;
}

size_t arrow_first_buffer(const ArrowBuffers& buffers, const ArrowPlace& place) {
  size_t index = place.buffer;
  for (size_t i = 0; i < place.views_before; ++i) index += buffers.data_buffers(i);
  return index;
}

ArrowTexts::ArrowTexts(ArrowBuffers& buffers, const ArrowPlace& place, size_t rows)
    : layout_(place.layout), rows_(rows) {
  const int64_t has = buffers.node(place.node).length();
  if (std::cmp_less(has, rows)) throw Damage(fmt::format("a list or a struct has {} texts of {}", rows, has));
  if (rows == 0) return;  // its buffers may be empty
  const size_t index = arrow_first_buffer(buffers, place);
  const size_t data_buffers = layout_ == TextLayout::Views ? buffers.data_buffers(place.views_before) : 1;
  validity_ = arrow_validity(buffers, place.node, index, rows);
  places_ = buffers.buffer(index + 1);
  if (places_.size() < bytes_of_places(layout_, rows_)) throw Damage("a batch has fewer texts than rows");
  for (size_t i = 0; i < data_buffers; ++i) texts_.push_back(buffers.buffer(index + 2 + i));
}

std::string_view ArrowTexts::text(size_t row) const {
  if (layout_ == TextLayout::Views) return text_of_view(row);
  const bool is_wide = layout_ == TextLayout::Offsets64;
  const int64_t begin = is_wide ? arrow_number<int64_t>(places_, row) : arrow_number<int32_t>(places_, row);
  const int64_t end = is_wide ? arrow_number<int64_t>(places_, row + 1) : arrow_number<int32_t>(places_, row + 1);
  const auto text = begin < 0 || end < begin ? std::nullopt : part_of(texts_.front(), begin, end - begin);
  if (!text) throw Damage(fmt::format("a text goes from byte {} to {} of {}", begin, end, texts_.front().size()));
  return *text;
}

/// A view is the length of the text, then the text itself where that is short, else its first 4 bytes, the number of
/// its buffer, and where it begins there.
std::string_view ArrowTexts::text_of_view(size_t row) const {
  const std::string_view view = places_.substr(row * kViewBytes, kViewBytes);
  const auto length = arrow_number<int32_t>(view, 0);
  if (length >= 0 && static_cast<size_t>(length) <= kLongestInView) return view.substr(4, static_cast<size_t>(length));
  const auto buffer = arrow_number<int32_t>(view, 2), begin = arrow_number<int32_t>(view, 3);
  const bool is_there = buffer >= 0 && static_cast<size_t>(buffer) < texts_.size();
  const auto text = is_there ? part_of(texts_[static_cast<size_t>(buffer)], begin, length) : std::nullopt;
  if (!text) throw Damage(fmt::format("a text of {} bytes begins at byte {} of the buffer {}", length, begin, buffer));
  return *text;
}

}  // namespace trainyard::data
