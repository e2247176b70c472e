#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "data/columns/content.h"
#include "data/columns/record_columns.h"
#include "data/columns/text_column.h"

// Apache Arrow's IPC format: a stream, as Hugging Face `datasets` writes it, or a file (Feather 2).
namespace trainyard::data {

/// A column of an .arrow file, some rows of a record batch at a time. Its buffers may be compressed by LZ4 or zstd;
/// those of one column and one batch are unpacked at a time, by next(). Throws InputError as open_text_column() does,
/// and for what is not offered: a column of dictionary indices, big-endian numbers.
std::unique_ptr<TextColumn> open_arrow(const std::filesystem::path& file, const std::string& column);

/// open_arrow() of what is in memory.
std::unique_ptr<TextColumn> read_arrow(FileContent content, const std::string& column);

/// The same of several columns, of any of these types, as open_record_columns() has them.
std::unique_ptr<TextColumn> open_arrow(const std::filesystem::path& file, const RecordColumns& columns);
std::unique_ptr<TextColumn> read_arrow(FileContent content, const RecordColumns& columns);

}  // namespace trainyard::data
