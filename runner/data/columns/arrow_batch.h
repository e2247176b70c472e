#pragma once

#include <arrow_generated.h>

#include <string_view>
#include <vector>

#include "data/columns/arrow_layout.h"
#include "data/columns/codecs.h"

namespace trainyard::data {

/// The texts of a column in a record batch. Threads may read them at once.
class ArrowBatch {
 public:
  /// `batch` has 0 to 2^48 rows; `body`, a view into the file, outlives this. Buffers that are compressed are unpacked
  /// here. Throws Damage.
  ArrowBatch(const fbs::RecordBatch& batch, std::string_view body, const ArrowPlace& place);

  [[nodiscard]] size_t rows() const { return rows_; }
  [[nodiscard]] bool is_null(size_t row) const;
  /// The view is as long as this object. Throws Damage where the text does not lie in its buffer.
  [[nodiscard]] std::string_view text(size_t row) const;

 private:
  std::string_view buffer(const fbs::RecordBatch& batch, std::string_view body, size_t index);
  std::string_view text_of_view(size_t row) const;

  TextLayout layout_;
  size_t rows_ = 0;
  std::string_view validity_;            ///< a bit a row; empty where no row is null
  std::string_view places_;              ///< the offsets, one more than rows, or the views
  std::vector<std::string_view> texts_;  ///< the bytes: one buffer for offsets, any number for views
  std::vector<Unpacked> unpacked_;
};

}  // namespace trainyard::data
