#pragma once

#include <string_view>
#include <vector>

#include "data/columns/arrow_buffers.h"
#include "data/columns/arrow_layout.h"

namespace trainyard::data {

/// The texts of a column in a record batch. Threads may read them at once.
class ArrowTexts {
 public:
  /// Of the first `rows` of the column. `buffers` outlive this. Throws Damage.
  ArrowTexts(ArrowBuffers& buffers, const ArrowPlace& place, size_t rows);

  [[nodiscard]] size_t rows() const { return rows_; }
  [[nodiscard]] bool is_null(size_t row) const { return !validity_.empty() && !arrow_bit(validity_, row); }
  /// The view is as long as the buffers. Throws Damage where the text does not lie in its buffer.
  [[nodiscard]] std::string_view text(size_t row) const;

 private:
  std::string_view text_of_view(size_t row) const;

  TextLayout layout_;
  size_t rows_ = 0;
  std::string_view validity_;            ///< a bit a row; empty where no row is null
  std::string_view places_;              ///< the offsets, one more than rows, or the views
  std::vector<std::string_view> texts_;  ///< the bytes: one buffer for offsets, any number for views
};

/// The bits that say which of so many rows are not null; empty where all are. Throws Damage.
std::string_view arrow_validity(ArrowBuffers& buffers, size_t node, size_t buffer, size_t rows);

/// Where the first of a column's buffers is: behind the data buffers of the views before it. Throws Damage.
size_t arrow_first_buffer(const ArrowBuffers& buffers, const ArrowPlace& place);

}  // namespace trainyard::data
