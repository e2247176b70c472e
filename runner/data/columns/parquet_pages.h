#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/mutex.h"
#include "data/columns/codecs.h"
#include "data/columns/damage.h"
#include "data/columns/parquet_encodings.h"
#include "data/columns/parquet_metadata.h"

namespace trainyard::data::parquet {

struct Page {
  PageHeader header;
  std::string_view content;  ///< behind the header, in the file
  size_t place = 0;          ///< of the header in the file
  int64_t first_row = 0;     ///< counts from 1 in the file
};

/// Calls `act`; what it finds damaged is told with the page's place in the file.
template <class Act>
auto at_page(size_t place, const Act& act) {
  try {
    return act();
  } catch (const Damage& damage) {
    throw Damage(fmt::format("its page at byte {}: {}", place, damage.what()));
  }
}

/// Which levels the pages of a column have.
struct HasLevels {
  bool repetition = false, definition = false;
};

/// The levels of a page's values, and the values, as they are encoded. All lie in `memory` or in the file.
struct PageParts {
  std::string_view repetition = {}, definition = {}, values = {};
  Unpacked memory = {};
};

/// Unpacks a page of data. Throws Damage, and NotOffered for levels that are encoded otherwise.
PageParts parts_of(const Page& page, Codec codec, const HasLevels& has);
/// Unpacks a page of a dictionary, likewise.
Unpacked unpack_dictionary(const Page& page, Codec codec);

bool uses_dictionary(Encoding encoding);
[[noreturn]] void refuse(Encoding encoding, const char* what);
/// The byte arrays of a page, `count` of them; `words` is not null where uses_dictionary(), and outlives them.
std::unique_ptr<TextValues> texts_in(Encoding encoding, std::string_view bytes, int64_t count, const Dictionary* words);

/// A column of text, as all its chunks have it.
struct ColumnOfText {
  std::string name;
  bool is_nullable = false;
};

/// What the pages of a chunk share. Any number of threads.
class ChunkOfText {
 public:
  /// Without a dictionary page no page may be encoded by one.
  ChunkOfText(ColumnOfText column, Codec codec, const std::optional<Page>& dictionary)
      : column_(std::move(column)), codec_(codec), dictionary_page_(dictionary) {}

  /// Visits the texts of a page, which is unpacked as long as that takes.
  /// Throws Damage, and NotOffered for a row without a text.
  void for_each(const Page& page, const VisitText& visit) const;

 private:
  /// Unpacks it when it is first asked for.
  const Dictionary& dictionary() const EXCLUDES(mutex_);

  const ColumnOfText column_;
  const Codec codec_;
  const std::optional<Page> dictionary_page_;
  mutable Mutex mutex_;
  mutable std::unique_ptr<const Dictionary> dictionary_ GUARDED_BY(mutex_);  // does not change once it is there
};

/// Goes through the pages of a chunk and reads nothing but their headers. One thread.
class PagesOfChunk {
 public:
  /// `content`: of the file, as far as pages may go. Throws Damage where the chunk lies outside.
  PagesOfChunk(std::string_view content, const ColumnChunk& chunk, int64_t first_row);

  /// The next page of data that has values; none when all the chunk's values have come. Throws Damage, also where the
  /// pages have not as many as the chunk.
  std::optional<Page> next();

  /// Once a page has come; none where the chunk has none.
  [[nodiscard]] const std::optional<Page>& dictionary() const { return dictionary_; }

 private:
  Page page();

  std::string_view rest_;
  size_t place_ = 0, end_ = 0;  ///< in the file: of the rest, and where no page begins any more
  int64_t values_;    ///< that are to come
  int64_t row_;
  std::optional<Page> dictionary_;
};

/// How many bytes of text a page of data has, about.
size_t bytes_of_text(const Page& page, const std::optional<Page>& dictionary);

}  // namespace trainyard::data::parquet
