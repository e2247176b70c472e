#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

namespace trainyard::data {

/// Rows are handed on about so many bytes at a time.
inline constexpr size_t kRowsBytes = size_t{1} << 20;

/// Hands on the text of a row, which counts from 1 in its file. The view is as long as the call.
using VisitRow = std::function<void(std::string_view text, int64_t row)>;

/// A column of text in some rows of a file that follow one another. Several threads may read rows of one file at once.
class TextRows {
 public:
  virtual ~TextRows() = default;
  /// Throws InputError, naming the file, for what is damaged or is not offered, and for a row without a text (null).
  virtual void for_each(const VisitRow& visit) const = 0;
  /// What the rows take in the file, about: what progress is told by.
  [[nodiscard]] virtual size_t bytes() const = 0;
};

/// A column of text of a file, some rows at a time, so that a file of any size takes bounded memory. One thread.
class TextColumn {
 public:
  virtual ~TextColumn() = default;
  /// The next rows, which hold on to what they need of the file; null at the end. Throws InputError for what is damaged.
  virtual std::shared_ptr<const TextRows> next() = 0;
  /// Of the whole file.
  [[nodiscard]] virtual int64_t rows() const = 0;
};

}  // namespace trainyard::data
