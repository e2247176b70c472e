#pragma once

#include <arrow_generated.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "data/columns/codecs.h"

namespace trainyard::data {

/// The nodes and buffers of a record batch, by their place in its flat lists. Each throws Damage where the batch has
/// not as many.
class ArrowBuffers {
 public:
  /// The batch and `body`, a view into the file, outlive this.
  ArrowBuffers(const fbs::RecordBatch& batch, std::string_view body) : batch_(batch), body_(body) {}

  /// Of the batch, 0 or more. Throws Damage where the top-level column of this node has others.
  [[nodiscard]] size_t rows(size_t node) const;
  [[nodiscard]] const fbs::FieldNode& node(size_t index) const;
  /// Its bytes, unpacked where they are compressed. The view is as long as this object.
  std::string_view buffer(size_t index);
  /// Data buffers of a column of views, the columns counted by themselves.
  [[nodiscard]] size_t data_buffers(size_t column_of_views) const;

 private:
  const fbs::RecordBatch& batch_;
  std::string_view body_;
  std::vector<Unpacked> unpacked_;
};

/// Number `index` of a buffer that has so many.
template <typename Number>
Number arrow_number(std::string_view bytes, size_t index) {
  Number number;
  __builtin_memcpy(&number, bytes.data() + index * sizeof(Number), sizeof(Number));
  return number;
}

/// Bit `index` of a buffer that has so many, the lowest of a byte first.
inline bool arrow_bit(std::string_view bytes, size_t index) {
  return (static_cast<unsigned char>(bytes[index / 8]) >> (index % 8) & 1) != 0;
}

}  // namespace trainyard::data
