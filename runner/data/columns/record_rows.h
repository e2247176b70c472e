#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/columns/text_column.h"

namespace trainyard::data {

/// Rows that were made into texts of JSON.
class RecordRows final : public TextRows {
 public:
  /// `first_row` counts from 1 in the file.
  RecordRows(std::vector<std::string> rows, int64_t first_row) : rows_(std::move(rows)), first_row_(first_row) {
    for (const std::string& row : rows_) bytes_ += row.size();
  }

  void for_each(const VisitRow& visit) const override {
    int64_t number = first_row_;
    for (const std::string& row : rows_) visit(row, number++);
  }
  [[nodiscard]] size_t bytes() const override { return bytes_; }

 private:
  std::vector<std::string> rows_;
  int64_t first_row_;
  size_t bytes_ = 0;
};

/// Adds a text to JSON, in quotes. What is no UTF-8 stays that.
void add_json_text(std::string& json, std::string_view text);
/// Adds a number; what is none, or infinite, as null.
void add_json_number(std::string& json, double number);

/// A few bytes of a file may make any number of elements, and so a row has no more bytes of JSON than this.
inline constexpr size_t kLargestRow = size_t{1} << 28;

/// Throws NotOffered, naming the row, where it is larger.
void require_row_size(std::string_view json);

}  // namespace trainyard::data
