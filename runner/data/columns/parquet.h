#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "data/columns/content.h"
#include "data/columns/record_columns.h"
#include "data/columns/text_column.h"

// Apache Parquet (github.com/apache/parquet-format): columns of text at the top of the schema, in every codec and
// encoding that writers use for them but LZO.
namespace trainyard::data {

/// A column of a .parquet file, some pages of a row group at a time. A column counts as text if it is annotated as a
/// text, JSON or an enumeration, or holds bytes without an annotation. Whether it is UTF-8 is not looked at.
/// next() reads the headers of pages alone; TextRows::for_each() unpacks one page at a time, and a row group's
/// dictionary once for all its pages. Throws InputError as open_text_column(), and for what is encrypted.
std::unique_ptr<TextColumn> open_parquet(const std::filesystem::path& file, const std::string& column);

/// open_parquet() of what is in memory.
std::unique_ptr<TextColumn> read_parquet(FileContent content, const std::string& column);

/// The same of several columns, of lists and structs within one another, as open_record_columns() has them.
std::unique_ptr<TextColumn> open_parquet(const std::filesystem::path& file, const RecordColumns& columns);
std::unique_ptr<TextColumn> read_parquet(FileContent content, const RecordColumns& columns);

}  // namespace trainyard::data
