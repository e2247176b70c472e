#include "data/columns/parquet_pages.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <utility>

#include "data/columns/damage.h"
#include "data/columns/parquet_integers.h"
#include "data/columns/taking.h"

namespace trainyard::data::parquet {
namespace {

/// Calls `act`; what it finds damaged is told with the page's place.
template <class Act>
auto at_page(size_t place, const Act& act) {
  try {
    return act();
  } catch (const Damage& damage) {
    throw Damage(fmt::format("its page at byte {}: {}", place, damage.what()));
  }
}

void check_crc(const Page& page) {
  if (!page.header.crc) return;
  const auto* const bytes = reinterpret_cast<const Bytef*>(page.content.data());
  if (crc32_z(0, bytes, page.content.size()) != *page.header.crc)
    throw Damage("the checksum in its header is not that of what follows");
}

bool uses_dictionary(Encoding encoding) {
  return encoding == Encoding::PlainDictionary || encoding == Encoding::RleDictionary;
}

std::string name_of(Encoding encoding) {
  switch (encoding) {
    case Encoding::Plain: return "PLAIN";
    case Encoding::PlainDictionary: return "PLAIN_DICTIONARY";
    case Encoding::Rle: return "RLE";
    case Encoding::BitPacked: return "BIT_PACKED";
    case Encoding::DeltaBinaryPacked: return "DELTA_BINARY_PACKED";
    case Encoding::DeltaLengthByteArray: return "DELTA_LENGTH_BYTE_ARRAY";
    case Encoding::DeltaByteArray: return "DELTA_BYTE_ARRAY";
    case Encoding::RleDictionary: return "RLE_DICTIONARY";
    case Encoding::ByteStreamSplit: return "BYTE_STREAM_SPLIT";
  }
  return fmt::format("number {}", static_cast<int32_t>(encoding));
}

[[noreturn]] void refuse(Encoding encoding, const char* what) {
  throw NotOffered(fmt::format("has {} in the encoding {}, which is not read", what, name_of(encoding)));
}

std::unique_ptr<const Dictionary> read_dictionary(const Page& page, Codec codec) {
  check_crc(page);
  const PageHeader& header = page.header;
  if (header.encoding != Encoding::Plain && header.encoding != Encoding::PlainDictionary)
    refuse(header.encoding, "a dictionary");
  return std::make_unique<const Dictionary>(unpack(codec, page.content, header.unpacked_bytes), header.values);
}

}  // namespace

/// A page's values as they are encoded. `bytes` lie in `memory` or in the file.
struct ChunkOfText::Values {
  std::string_view bytes, levels = {};
  Unpacked memory = {};
};

void ChunkOfText::for_each(const Page& page, const VisitText& visit) const {
  const Dictionary* const words = uses_dictionary(page.header.encoding) ? &dictionary() : nullptr;
  at_page(page.place, [&] {
    check_crc(page);
    const PageHeader& header = page.header;
    const Values values = header.type == PageType::Data ? values_v1(page) : values_v2(page);
    if (column_.is_nullable)
      if (const auto null = first_null(values.levels, header.values))
        throw NotOffered(
            fmt::format("row {} of the column '{}' has no text (null)", page.first_row + *null, column_.name));
    switch (header.encoding) {
      case Encoding::Plain: return for_each_plain(values.bytes, header.values, visit);
      case Encoding::DeltaLengthByteArray: return for_each_behind_lengths(values.bytes, header.values, visit);
      case Encoding::DeltaByteArray: return for_each_behind_prefixes(values.bytes, header.values, visit);
      case Encoding::PlainDictionary:
      case Encoding::RleDictionary: return for_each_of(*words, values.bytes, header.values, visit);
      default: refuse(header.encoding, "text");
    }
  });
}

/// Levels and values are packed as one, the levels behind their size.
ChunkOfText::Values ChunkOfText::values_v1(const Page& page) const {
  Values values{.memory = unpack(codec_, page.content, page.header.unpacked_bytes)};
  values.bytes = values.memory.bytes;
  if (!column_.is_nullable) return values;
  if (page.header.level_encoding != Encoding::Rle) refuse(page.header.level_encoding, "nulls");
  values.levels = take(values.bytes, take_integer(values.bytes));
  return values;
}

/// Levels come first and are never packed.
ChunkOfText::Values ChunkOfText::values_v2(const Page& page) const {
  const PageHeader& header = page.header;
  std::string_view rest = page.content;
  take(rest, header.repetition_bytes);
  Values values{.levels = take(rest, header.level_bytes)};
  const size_t levels = page.content.size() - rest.size();
  if (levels > header.unpacked_bytes)
    throw Damage(fmt::format("{} of its {} bytes are levels", levels, header.unpacked_bytes));
  values.memory = unpack(header.is_packed ? codec_ : Codec::None, rest, header.unpacked_bytes - levels);
  values.bytes = values.memory.bytes;
  return values;
}

const Dictionary& ChunkOfText::dictionary() const {
  if (!dictionary_page_) throw Damage("its texts are in a dictionary that is not there");
  const MutexLock lock(mutex_);
  if (!dictionary_)
    dictionary_ = at_page(dictionary_page_->place, [&] { return read_dictionary(*dictionary_page_, codec_); });
  return *dictionary_;
}

PagesOfChunk::PagesOfChunk(std::string_view content, const ColumnChunk& chunk, int64_t first_row)
    : values_(chunk.values), row_(first_row) {
  // Some writers put 0 where there is no dictionary, some name its place as that of the data.
  const int64_t dictionary = chunk.dictionary_page_offset.value_or(0);
  const int64_t begin = dictionary > 0 ? std::min(dictionary, chunk.data_page_offset) : chunk.data_page_offset;
  place_ = static_cast<size_t>(begin);
  if (place_ > content.size() || std::cmp_greater(chunk.packed_bytes, content.size() - place_))
    throw Damage(fmt::format("a column of {} bytes at byte {} goes beyond its {} bytes of pages", chunk.packed_bytes,
                             begin, content.size()));
  end_ = place_ + static_cast<size_t>(chunk.packed_bytes);
  // Writers before parquet-mr 1.2.9 do not count the header of the dictionary (PARQUET-816), so that the last page of
  // theirs ends beyond the chunk.
  constexpr size_t kLargestHeader = 100;
  rest_ = content.substr(place_, end_ - place_ + kLargestHeader);
}

std::optional<Page> PagesOfChunk::next() {
  while (values_ > 0) {
    const Page found = page();
    const PageType type = found.header.type;
    if (type == PageType::Dictionary) {
      if (std::exchange(dictionary_, found)) throw Damage("a column has two dictionaries");
      continue;
    }
    if ((type != PageType::Data && type != PageType::DataV2) || found.header.values == 0) continue;
    if (found.header.values > values_)
      throw Damage(fmt::format("its page at byte {} has {} values where its column has {} left", found.place,
                               found.header.values, values_));
    values_ -= found.header.values;
    row_ += found.header.values;
    return found;
  }
  return std::nullopt;
}

Page PagesOfChunk::page() {
  if (place_ >= end_) throw Damage(fmt::format("the pages of a column lack {} of its values", values_));
  return at_page(place_, [&] {
    Page page{.header = read_page_header(rest_), .place = place_, .first_row = row_};
    std::string_view rest = rest_.substr(page.header.bytes);
    page.content = take(rest, page.header.packed_bytes);
    place_ += rest_.size() - rest.size();
    rest_ = rest;
    return page;
  });
}

size_t bytes_of_text(const Page& page, const std::optional<Page>& dictionary) {
  const PageHeader& header = page.header;
  if (!dictionary || !uses_dictionary(header.encoding) || dictionary->header.values == 0) return header.unpacked_bytes;
  const PageHeader& words = dictionary->header;
  return static_cast<size_t>(header.values) * (words.unpacked_bytes / static_cast<size_t>(words.values));
}

}  // namespace trainyard::data::parquet
