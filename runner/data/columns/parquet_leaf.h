#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "data/columns/codecs.h"
#include "data/columns/parquet_integers.h"
#include "data/columns/parquet_metadata.h"
#include "data/columns/parquet_pages.h"

namespace trainyard::data::parquet {

/// A column that holds values, at any depth of the schema.
struct Leaf {
  std::string name;
  size_t number = 0;  ///< among the columns of a row group
  PhysicalType type = PhysicalType::ByteArray;
  unsigned repetition = 0, definition = 0;  ///< the highest levels that it has
};

/// The entries of a leaf in one row group: each has a repetition and a definition level, and where the latter is the
/// highest a value (Dremel, Melnik 2010). A page is unpacked at a time. Each call may throw Damage. One thread.
class LeafReader {
 public:
  /// `content`: of the file, as far as pages may go. All outlive it.
  LeafReader(std::string_view content, const Leaf& leaf, const ColumnChunk& chunk, Codec codec);
  ~LeafReader();

  [[nodiscard]] bool is_at_end() const { return !has_entry_; }
  // The levels of the next entry, which is to be there.
  [[nodiscard]] unsigned repetition() const { return repetition_; }
  [[nodiscard]] unsigned definition() const { return definition_; }
  [[nodiscard]] bool has_value() const { return definition_ == leaf_.definition; }
  /// Takes the next entry, and adds the value that it has to JSON.
  void take_value(std::string& json);
  /// Takes the next entry, which has no value.
  void pass() { advance(); }

  class Values;

 private:
  void advance();
  void read_page();
  void read_dictionary();
  [[nodiscard]] int64_t values_in_page() const;
  std::unique_ptr<Values> values_of_page();

  const Leaf& leaf_;
  Codec codec_;
  PagesOfChunk pages_;
  std::optional<Page> page_;
  PageParts parts_;
  std::optional<HybridValues> repetitions_, definitions_;
  std::unique_ptr<const Dictionary> words_;  ///< of texts
  std::optional<Unpacked> numbers_;          ///< a dictionary of numbers
  std::unique_ptr<Values> values_;           ///< of the page, once one was asked for; uses what is above
  int64_t left_ = 0;                         ///< entries of the page behind the next one
  unsigned repetition_ = 0, definition_ = 0;
  bool has_entry_ = false;
};

}  // namespace trainyard::data::parquet
