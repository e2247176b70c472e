#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "data/columns/codecs.h"

// How Parquet keeps byte arrays (github.com/apache/parquet-format, Encodings.md). All throw Damage where the bytes are
// not as many as `count` values take.
namespace trainyard::data::parquet {

/// The view is as long as the call.
using VisitText = std::function<void(std::string_view text)>;

/// The byte arrays of a page, one after another. One thread.
class TextValues {
 public:
  virtual ~TextValues() = default;
  /// Call it no more than count times. The view is as long as the next call.
  virtual std::string_view next() = 0;
  /// After all of them: throws Damage where bytes are left.
  virtual void expect_end() const {}
};

/// PLAIN: each behind its length.
std::unique_ptr<TextValues> plain_texts(std::string_view bytes);
/// DELTA_LENGTH_BYTE_ARRAY: the lengths, then the texts.
std::unique_ptr<TextValues> texts_behind_lengths(std::string_view bytes, int64_t count);
/// DELTA_BYTE_ARRAY: how much each has in common with the one before, then the rest of each, behind their lengths.
std::unique_ptr<TextValues> texts_behind_prefixes(std::string_view bytes, int64_t count);

/// The texts of a page in PLAIN, by their numbers. It does not change.
class Dictionary {
 public:
  Dictionary(Unpacked page, int64_t count);
  /// Throws Damage where there is none of this number.
  [[nodiscard]] std::string_view operator[](uint32_t number) const;

 private:
  Unpacked page_;
  std::vector<uint32_t> places_;  ///< of lengths in the page
};

/// PLAIN_DICTIONARY and RLE_DICTIONARY, which are the same: the bits of an index, then the indices. The dictionary
/// outlives it.
std::unique_ptr<TextValues> texts_of(const Dictionary& dictionary, std::string_view bytes);

/// So many, and then the end.
void for_each(TextValues& values, int64_t count, const VisitText& visit);

}  // namespace trainyard::data::parquet
