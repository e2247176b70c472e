#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "data/columns/text_column.h"

namespace trainyard::data {

/// Whether a file holds a table: its ending, in any case, is .parquet or .arrow.
bool is_table(const std::filesystem::path& file);

/// Throws InputError: the file is damaged or no such file, has no such column (and which it has), or the column holds no
/// text.
std::unique_ptr<TextColumn> open_text_column(const std::filesystem::path& file, const std::string& column);

}  // namespace trainyard::data
