#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::metrics {

/// Columns a terminal needs for `text`: its code points (combining and double-width characters are not expected here).
size_t display_width(std::string_view text);

/// Cut to at most `width` columns, ending in … where something was cut.
std::string clipped(std::string_view text, size_t width);

/// One row of a box: what and how much.
struct TableRow {
  std::string name;
  std::string value;
};

/// A box of two aligned columns with a title, each line ended by a line feed, no wider than `width` columns:
///   ┌ plan ───────────────────┐
///   │ parameters   29,368,320 │
///   └─────────────────────────┘
std::string format_table(std::string_view title, const std::vector<TableRow>& rows, size_t width = 100);

/// Rows under a header in aligned columns; the first column is left-aligned, the others right. Each line ended.
std::string format_columns(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows);

}  // namespace trainyard::metrics
