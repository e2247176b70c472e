#include "data/columns/arrow_batch.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <optional>

#include "data/columns/codecs.h"
#include "data/columns/damage.h"

namespace trainyard::data {
namespace {

constexpr size_t kViewBytes = 16, kLongestInView = 12;

template <typename Number>
Number number_at(std::string_view bytes, size_t index) {
  Number number;
  std::memcpy(&number, bytes.data() + index * sizeof(Number), sizeof(Number));
  return number;
}

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

Codec codec_of(const fbs::BodyCompression& compression) {
  return compression.codec() == fbs::CompressionType_Zstd ? Codec::Zstd : Codec::Lz4Frame;
}

}  // namespace

ArrowBatch::ArrowBatch(const fbs::RecordBatch& batch, std::string_view body, const ArrowPlace& place)
    : layout_(place.layout) {
  if (!batch.nodes() || place.node >= batch.nodes()->size()) throw Damage("a batch has fewer columns than the schema");
  const fbs::FieldNode& node = *batch.nodes()->Get(static_cast<flatbuffers::uoffset_t>(place.node));
  if (node.length() != batch.length())
    throw Damage(fmt::format("a batch has {} rows, and its column has {}", batch.length(), node.length()));
  if (batch.length() == 0) return;  // its buffers may be empty
  rows_ = static_cast<size_t>(batch.length());

  size_t index = place.buffer;  // behind the data buffers of the views before it
  int64_t data_buffers = 1;
  if (place.views_before > 0 || layout_ == TextLayout::Views) {
    const auto* const counts = batch.variadic_buffer_counts();
    const size_t needed = place.views_before + (layout_ == TextLayout::Views ? 1 : 0);
    if (!counts || counts->size() < needed) throw Damage("a batch does not say how many buffers its views have");
    for (size_t i = 0; i < needed; ++i) {
      const int64_t count = counts->Get(static_cast<flatbuffers::uoffset_t>(i));
      const int64_t most = batch.buffers() ? batch.buffers()->size() : 0;
      if (count < 0 || count > most) throw Damage(fmt::format("views have {} buffers in a batch of {}", count, most));
      if (i < place.views_before)
        index += static_cast<size_t>(count);
      else
        data_buffers = count;
    }
  }
  if (node.null_count() != 0) {
    validity_ = buffer(batch, body, index);
    if (validity_.size() < (rows_ + 7) / 8) throw Damage("a batch has fewer bits of validity than rows");
  }
  places_ = buffer(batch, body, index + 1);
  if (places_.size() < bytes_of_places(layout_, rows_)) throw Damage("a batch has fewer texts than rows");
  for (int64_t i = 0; i < data_buffers; ++i) texts_.push_back(buffer(batch, body, index + 2 + static_cast<size_t>(i)));
}

std::string_view ArrowBatch::buffer(const fbs::RecordBatch& batch, std::string_view body, size_t index) {
  if (!batch.buffers() || index >= batch.buffers()->size()) throw Damage("a batch has fewer buffers than the schema");
  const fbs::Buffer& place = *batch.buffers()->Get(static_cast<flatbuffers::uoffset_t>(index));
  const auto stored = part_of(body, place.offset(), place.length());
  if (!stored) throw Damage("a batch has a buffer outside of its body");
  if (!batch.compression() || stored->empty()) return *stored;

  constexpr int64_t kAsItIs = -1;
  if (stored->size() < sizeof(int64_t)) throw Damage("a compressed buffer is shorter than its length");
  const auto length = number_at<int64_t>(*stored, 0);
  const std::string_view packed = stored->substr(sizeof length);
  if (length == kAsItIs) return packed;
  if (length < 0) throw Damage(fmt::format("a compressed buffer is to have {} bytes", length));
  unpacked_.push_back(unpack(codec_of(*batch.compression()), packed, static_cast<size_t>(length)));
  return unpacked_.back().bytes;
}

bool ArrowBatch::is_null(size_t row) const {
  return !validity_.empty() && (static_cast<unsigned char>(validity_[row / 8]) >> (row % 8) & 1) == 0;
}

std::string_view ArrowBatch::text(size_t row) const {
  if (layout_ == TextLayout::Views) return text_of_view(row);
  const bool is_wide = layout_ == TextLayout::Offsets64;
  const int64_t begin = is_wide ? number_at<int64_t>(places_, row) : number_at<int32_t>(places_, row);
  const int64_t end = is_wide ? number_at<int64_t>(places_, row + 1) : number_at<int32_t>(places_, row + 1);
  const auto text = begin < 0 || end < begin ? std::nullopt : part_of(texts_.front(), begin, end - begin);
  if (!text) throw Damage(fmt::format("a text goes from byte {} to {} of {}", begin, end, texts_.front().size()));
  return *text;
}

/// A view is the length of the text, then the text itself where that is short, else its first 4 bytes, the number of
/// its buffer, and where it begins there.
std::string_view ArrowBatch::text_of_view(size_t row) const {
  const std::string_view view = places_.substr(row * kViewBytes, kViewBytes);
  const auto length = number_at<int32_t>(view, 0);
  if (length >= 0 && static_cast<size_t>(length) <= kLongestInView) return view.substr(4, static_cast<size_t>(length));
  const auto buffer = number_at<int32_t>(view, 2), begin = number_at<int32_t>(view, 3);
  const bool is_there = buffer >= 0 && static_cast<size_t>(buffer) < texts_.size();
  const auto text = is_there ? part_of(texts_[static_cast<size_t>(buffer)], begin, length) : std::nullopt;
  if (!text) throw Damage(fmt::format("a text of {} bytes begins at byte {} of the buffer {}", length, begin, buffer));
  return *text;
}

}  // namespace trainyard::data
