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

void check_crc(const Page& page) {
  if (!page.header.crc) return;
  const auto* const bytes = reinterpret_cast<const Bytef*>(page.content.data());
  if (crc32_z(0, bytes, page.content.size()) != *page.header.crc)
    throw Damage("the checksum in its header is not that of what follows");
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

}  // namespace

bool uses_dictionary(Encoding encoding) {
  return encoding == Encoding::PlainDictionary || encoding == Encoding::RleDictionary;
}

void refuse(Encoding encoding, const char* what) {
  throw NotOffered(fmt::format("has {} in the encoding {}, which is not read", what, name_of(encoding)));
}

std::unique_ptr<TextValues> texts_in(Encoding encoding, std::string_view bytes, int64_t count,
                                     const Dictionary* words) {
  switch (encoding) {
    case Encoding::Plain:
      return plain_texts(bytes);
    case Encoding::DeltaLengthByteArray:
      return texts_behind_lengths(bytes, count);
    case Encoding::DeltaByteArray:
      return texts_behind_prefixes(bytes, count);
    case Encoding::PlainDictionary:
    case Encoding::RleDictionary:
      return texts_of(*words, bytes);
    default:
      refuse(encoding, "text");
  }
}

Unpacked unpack_dictionary(const Page& page, Codec codec) {
  check_crc(page);
  const PageHeader& header = page.header;
  if (header.encoding != Encoding::Plain && header.encoding != Encoding::PlainDictionary)
    refuse(header.encoding, "a dictionary");
  return unpack(codec, page.content, header.unpacked_bytes);
}

namespace {

/// Levels and values are packed as one, the levels behind their sizes.
PageParts parts_of_v1(const Page& page, Codec codec, const HasLevels& has) {
  PageParts parts{.memory = unpack(codec, page.content, page.header.unpacked_bytes)};
  parts.values = parts.memory.bytes;
  const auto levels = [&](Encoding encoding, const char* what) {
    if (encoding != Encoding::Rle) refuse(encoding, what);
    return take(parts.values, take_integer(parts.values));
  };
  if (has.repetition) parts.repetition = levels(page.header.repetition_encoding, "lists");
  if (has.definition) parts.definition = levels(page.header.level_encoding, "nulls");
  return parts;
}

/// Levels come first and are never packed.
PageParts parts_of_v2(const Page& page, Codec codec) {
  const PageHeader& header = page.header;
  std::string_view rest = page.content;
  PageParts parts{.repetition = take(rest, header.repetition_bytes)};
  parts.definition = take(rest, header.level_bytes);
  const size_t levels = page.content.size() - rest.size();
  if (levels > header.unpacked_bytes)
    throw Damage(fmt::format("{} of its {} bytes are levels", levels, header.unpacked_bytes));
  parts.memory = unpack(header.is_packed ? codec : Codec::None, rest, header.unpacked_bytes - levels);
  parts.values = parts.memory.bytes;
  return parts;
}

}  // namespace

PageParts parts_of(const Page& page, Codec codec, const HasLevels& has) {
  check_crc(page);
  return page.header.type == PageType::Data ? parts_of_v1(page, codec, has) : parts_of_v2(page, codec);
}

void ChunkOfText::for_each(const Page& page, const VisitText& visit) const {
  const Dictionary* const words = uses_dictionary(page.header.encoding) ? &dictionary() : nullptr;
  at_page(page.place, [&] {
    const PageHeader& header = page.header;
    const PageParts parts = parts_of(page, codec_, {.definition = column_.is_nullable});
    if (column_.is_nullable)
      if (const auto null = first_null(parts.definition, header.values))
        throw NotOffered(
            fmt::format("row {} of the column '{}' has no text (null)", page.first_row + *null, column_.name));
    parquet::for_each(*texts_in(header.encoding, parts.values, header.values, words), header.values, visit);
  });
}

const Dictionary& ChunkOfText::dictionary() const {
  if (!dictionary_page_) throw Damage("its texts are in a dictionary that is not there");
  const MutexLock lock(mutex_);
  if (!dictionary_)
    dictionary_ = at_page(dictionary_page_->place, [&] {
      return std::make_unique<const Dictionary>(unpack_dictionary(*dictionary_page_, codec_),
                                                dictionary_page_->header.values);
    });
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
