#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "data/columns/parquet_leaf.h"
#include "data/columns/parquet_metadata.h"
#include "data/columns/record_columns.h"

namespace trainyard::data::parquet {

struct TextLeaf {
  size_t number = 0;  ///< among the columns of a row group
  bool is_nullable = false;
};

/// Where a schema has the column of text `name`, at its top. Throws NotOffered, with the columns of text that there
/// are, where it has none of the name or that one holds no text, Damage where the schema is no tree.
TextLeaf find_text_column(std::span<const SchemaElement> schema, const std::string& name);

/// A column with all that is inside of it. What is no JSON is passed over.
struct RecordNode {
  enum class Kind { Leaf, Struct, List, PassedOver };
  std::string name;
  Kind kind = Kind::PassedOver;
  unsigned definition = 0;                ///< the level from which on it is there, and not null
  unsigned repetition = 0;                ///< of a list: the level of an entry that begins another element
  unsigned element_definition = 0;        ///< of a list: the level from which on it has an element
  size_t leaf = 0;                        ///< its own in Record::leaves, or the first inside of it
  std::vector<RecordNode> children = {};  ///< of a list the element
};

struct Record {
  std::vector<RecordNode> columns;
  std::vector<Leaf> leaves;
};

/// The columns in a schema, at its top. Throws NotOffered where it has not the one that is needed, Damage where the
/// schema is no tree.
Record find_record(std::span<const SchemaElement> schema, const RecordColumns& columns);

}  // namespace trainyard::data::parquet
