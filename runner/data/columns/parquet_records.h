#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/columns/parquet_leaf.h"
#include "data/columns/parquet_schema.h"

namespace trainyard::data::parquet {

/// Rows of a row group, put together again from the leaves of their columns. One thread.
class RecordReader {
 public:
  /// Its leaves begin the row group. `record` outlives it.
  RecordReader(const Record& record, std::vector<std::unique_ptr<LeafReader>> leaves)
      : record_(record), leaves_(std::move(leaves)) {}

  /// The next row as a JSON object. Throws Damage, also where the row group has no more of them, and NotOffered for a
  /// row that is too large.
  std::string next();
  /// Throws Damage where a leaf has more entries.
  void expect_end() const;

 private:
  void add(const RecordNode& node, unsigned repetition, std::string& json);
  void add_struct(const RecordNode& node, unsigned repetition, std::string& json);
  void add_list(const RecordNode& node, unsigned repetition, std::string& json);
  void pass(const RecordNode& node, unsigned repetition, unsigned below);
  LeafReader& entry(size_t leaf, unsigned repetition);

  const Record& record_;
  std::vector<std::unique_ptr<LeafReader>> leaves_;
};

}  // namespace trainyard::data::parquet
