#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "data/columns/parquet_metadata.h"

namespace trainyard::data::parquet {

struct TextLeaf {
  size_t number = 0;  ///< among the columns of a row group
  bool is_nullable = false;
};

/// Where a schema has the column of text `name`, at its top. Throws NotOffered, with the columns of text that there
/// are, where it has none of the name or that one holds no text, Damage where the schema is no tree.
TextLeaf find_text_column(std::span<const SchemaElement> schema, const std::string& name);

}  // namespace trainyard::data::parquet
