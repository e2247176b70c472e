#include "data/columns/arrow_buffers.h"

#include <fmt/format.h>

#include "data/columns/damage.h"

namespace trainyard::data {
namespace {

Codec codec_of(const fbs::BodyCompression& compression) {
  return compression.codec() == fbs::CompressionType_Zstd ? Codec::Zstd : Codec::Lz4Frame;
}

}  // namespace

size_t ArrowBuffers::rows(size_t index) const {
  if (const int64_t rows = node(index).length(); rows != batch_.length())
    throw Damage(fmt::format("a batch has {} rows, and its column has {}", batch_.length(), rows));
  return static_cast<size_t>(batch_.length());
}

const fbs::FieldNode& ArrowBuffers::node(size_t index) const {
  if (!batch_.nodes() || index >= batch_.nodes()->size()) throw Damage("a batch has fewer columns than the schema");
  return *batch_.nodes()->Get(static_cast<flatbuffers::uoffset_t>(index));
}

std::string_view ArrowBuffers::buffer(size_t index) {
  if (!batch_.buffers() || index >= batch_.buffers()->size()) throw Damage("a batch has fewer buffers than the schema");
  const fbs::Buffer& place = *batch_.buffers()->Get(static_cast<flatbuffers::uoffset_t>(index));
  const auto size = static_cast<int64_t>(body_.size());
  if (place.offset() < 0 || place.length() < 0 || place.offset() > size || place.length() > size - place.offset())
    throw Damage("a batch has a buffer outside of its body");
  const std::string_view stored =
      body_.substr(static_cast<size_t>(place.offset()), static_cast<size_t>(place.length()));
  if (!batch_.compression() || stored.empty()) return stored;

  constexpr int64_t kAsItIs = -1;
  if (stored.size() < sizeof(int64_t)) throw Damage("a compressed buffer is shorter than its length");
  const auto length = arrow_number<int64_t>(stored, 0);
  const std::string_view packed = stored.substr(sizeof length);
  if (length == kAsItIs) return packed;
  if (length < 0) throw Damage(fmt::format("a compressed buffer is to have {} bytes", length));
  unpacked_.push_back(unpack(codec_of(*batch_.compression()), packed, static_cast<size_t>(length)));
  return unpacked_.back().bytes;
}

size_t ArrowBuffers::data_buffers(size_t column_of_views) const {
  const auto* const counts = batch_.variadic_buffer_counts();
  if (!counts || counts->size() <= column_of_views)
    throw Damage("a batch does not say how many buffers its views have");
  const int64_t count = counts->Get(static_cast<flatbuffers::uoffset_t>(column_of_views));
  const int64_t most = batch_.buffers() ? batch_.buffers()->size() : 0;
  if (count < 0 || count > most) throw Damage(fmt::format("views have {} buffers in a batch of {}", count, most));
  return static_cast<size_t>(count);
}

}  // namespace trainyard::data
