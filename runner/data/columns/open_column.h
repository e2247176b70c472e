#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "data/columns/record_columns.h"
#include "data/columns/text_column.h"

namespace trainyard::data {

/// Whether a file holds a table: its ending, in any case, is .parquet or .arrow.
bool is_table(const std::filesystem::path& file);

/// Throws InputError: the file is damaged or no such file, has no such column (and which it has), or the column holds no
/// text.
std::unique_ptr<TextColumn> open_text_column(const std::filesystem::path& file, const std::string& column);

/// Columns that are read together, at the top of the schema: a row's text is a JSON object of those that the file has.
/// Dates, decimal numbers, bytes and what else JSON has not are null. Throws InputError: the file is damaged or no such
/// file, or has not the column that is needed (and which it has).
std::unique_ptr<TextColumn> open_record_columns(const std::filesystem::path& file, const RecordColumns& columns);

}  // namespace trainyard::data
