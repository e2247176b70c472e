#include "data/columns/open_column.h"

#include "base/lowercase.h"
#include "data/columns/arrow.h"
#include "data/columns/parquet.h"

namespace trainyard::data {
namespace {
namespace fs = std::filesystem;

std::string ending(const fs::path& file) {
  return lowercase(file.extension().string());
}

}  // namespace

bool is_table(const fs::path& file) {
  return ending(file) == ".parquet" || ending(file) == ".arrow";
}

std::unique_ptr<TextColumn> open_text_column(const fs::path& file, const std::string& column) {
  return ending(file) == ".parquet" ? open_parquet(file, column) : open_arrow(file, column);
}

std::unique_ptr<TextColumn> open_record_columns(const fs::path& file, const RecordColumns& columns) {
  return ending(file) == ".parquet" ? open_parquet(file, columns) : open_arrow(file, columns);
}

}  // namespace trainyard::data
