#include "metrics/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace trainyard::metrics {
namespace {

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

std::string repeated(std::string_view text, size_t times) {
  std::string result;
  for (size_t i = 0; i < times; ++i) result += text;
  return result;
}

std::string padding(std::string_view text, size_t width) {
  return std::string(width - std::min(width, display_width(text)), ' ');
}

size_t widest(const std::vector<TableRow>& rows, std::string TableRow::*column) {
  size_t width = 0;
  for (const TableRow& row : rows) width = std::max(width, display_width(row.*column));
  return width;
}

}  // namespace

size_t display_width(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return !is_continuation(c); }));
}

std::string clipped(std::string_view text, size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return "";
  size_t bytes = 0;
  for (size_t columns = 0; columns < width; ++columns) do
      ++bytes;
    while (bytes < text.size() && is_continuation(text[bytes]));
  // `bytes` ends after `width` columns; the last of them becomes the mark.
  do --bytes;
  while (bytes > 0 && is_continuation(text[bytes]));
  return std::string(text.substr(0, bytes)) + "…";
}

std::string format_table(std::string_view title, const std::vector<TableRow>& rows, size_t width) {
  constexpr size_t kFrame = 4, kGap = 3;  // "│ " and " │"; between the columns
  const size_t names = widest(rows, &TableRow::name);
  const size_t room = width > names + kGap + kFrame ? width - names - kGap - kFrame : 1;
  const size_t values = std::min(room, std::max(widest(rows, &TableRow::value), display_width(title)));
  const size_t inner = names + kGap + values + 2;
  const std::string head = clipped(title, inner - 3);
  std::string result = fmt::format("┌ {} {}┐\n", head, repeated("─", inner - 2 - display_width(head)));
  for (const TableRow& row : rows) {
    const std::string value = clipped(row.value, values);
    result += fmt::format("│ {}{}   {}{} │\n", row.name, padding(row.name, names), value, padding(value, values));
  }
  return result + fmt::format("└{}┘\n", repeated("─", inner));
}

std::string format_columns(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const std::string& name : header) widths.push_back(display_width(name));
  for (const auto& row : rows) {
    if (row.size() != header.size())
      throw std::invalid_argument(
          fmt::format("format_columns: a row has {} cells, the header {}", row.size(), header.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string space = padding(cells[i], widths[i]);
      text += (i ? "  " : "") + (i ? space + cells[i] : cells[i] + space);
    }
    return text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
  };
  std::string result = line(header);
  for (const auto& row : rows) result += line(row);
  return result;
}

}  // namespace trainyard::metrics
