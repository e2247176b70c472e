#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/columns/arrow_buffers.h"
#include "data/columns/arrow_layout.h"

namespace trainyard::data {

/// Some columns of a record batch, of lists and structs within one another.
class ArrowRecords {
 public:
  /// Throws Damage.
  ArrowRecords(const fbs::RecordBatch& batch, std::string_view body, const std::vector<ArrowField>& fields);
  ~ArrowRecords();

  [[nodiscard]] size_t rows() const { return rows_; }
  /// A JSON object with a member a column. Throws Damage, and NotOffered for one that is too large.
  [[nodiscard]] std::string json(size_t row) const;

  class Values;

 private:
  ArrowBuffers buffers_;
  size_t rows_ = 0;
  std::vector<std::pair<std::string, std::unique_ptr<const Values>>> columns_;  ///< by their names
};

}  // namespace trainyard::data
