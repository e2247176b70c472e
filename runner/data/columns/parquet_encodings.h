#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "data/columns/codecs.h"

// How Parquet keeps byte arrays (github.com/apache/parquet-format, Encodings.md). All throw Damage where the bytes are
// not as many as `count` values take.
namespace trainyard::data::parquet {

/// The view is as long as the call.
using VisitText = std::function<void(std::string_view text)>;

/// PLAIN: each behind its length.
void for_each_plain(std::string_view bytes, int64_t count, const VisitText& visit);

/// DELTA_LENGTH_BYTE_ARRAY: the lengths, then the texts.
void for_each_behind_lengths(std::string_view bytes, int64_t count, const VisitText& visit);

/// DELTA_BYTE_ARRAY: how much each has in common with the one before, then the rest of each, behind their lengths.
void for_each_behind_prefixes(std::string_view bytes, int64_t count, const VisitText& visit);

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

/// PLAIN_DICTIONARY and RLE_DICTIONARY, which are the same: the bits of an index, then the indices.
void for_each_of(const Dictionary& dictionary, std::string_view bytes, int64_t count, const VisitText& visit);

}  // namespace trainyard::data::parquet
