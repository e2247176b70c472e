#include "data/columns/arrow_records.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

#include "data/columns/arrow_texts.h"
#include "data/columns/damage.h"
#include "data/columns/record_rows.h"

namespace trainyard::data {

/// The values of a column, or of one inside of others.
class ArrowRecords::Values {
 public:
  /// The values of the field's first `rows`.
  Values(ArrowBuffers& buffers, const ArrowField& field, size_t rows) : field_(field), rows_(rows) {
    if (field.kind == ArrowKind::PassedOver) return;
    if (field.kind == ArrowKind::Text) {
      texts_.emplace(buffers, field.place, rows);
      return;
    }
    const int64_t has = buffers.node(field.place.node).length();
    if (std::cmp_less(has, rows))
      throw Damage(fmt::format("the column '{}' has {} values for {}", field.name, has, rows));
    const size_t index = arrow_first_buffer(buffers, field.place);
    validity_ = arrow_validity(buffers, field.place.node, index, rows);
    if (const size_t bits = bits_a_row(); bits > 0 && rows > 0) {
      values_ = buffers.buffer(index + 1);
      const bool has_last_offset = field.kind == ArrowKind::List || field.kind == ArrowKind::LargeList;
      if ((values_.size() * 8) / bits < rows + (has_last_offset ? 1 : 0))
        throw Damage(fmt::format("the column '{}' has fewer values than rows", field.name));
    }
    for (const ArrowField& child : field.children)
      children_.push_back(std::make_unique<const Values>(buffers, child, rows_of_children(rows)));
  }

  void add(std::string& json, size_t row) const {
    require_row_size(json);
    const bool is_null = texts_ ? texts_->is_null(row) : !validity_.empty() && !arrow_bit(validity_, row);
    if (is_null || field_.kind == ArrowKind::PassedOver) return static_cast<void>(json += "null");
    switch (field_.kind) {
      case ArrowKind::Text:
        return add_json_text(json, texts_->text(row));
      case ArrowKind::Integer:
        return add_integer(json, row);
      case ArrowKind::Float:
        return add_json_number(
            json, field_.bits == 32 ? arrow_number<float>(values_, row) : arrow_number<double>(values_, row));
      case ArrowKind::Boolean:
        return static_cast<void>(json += arrow_bit(values_, row) ? "true" : "false");
      case ArrowKind::Struct:
        return add_struct(json, row);
      default:
        return add_list(json, row);
    }
  }

 private:
  /// What a row takes of the field's own buffer.
  [[nodiscard]] size_t bits_a_row() const {
    switch (field_.kind) {
      case ArrowKind::Integer:
      case ArrowKind::Float:
        return field_.bits;
      case ArrowKind::Boolean:
        return 1;
      case ArrowKind::List:
        return 32;
      case ArrowKind::LargeList:
        return 64;
      default:
        return 0;
    }
  }

  [[nodiscard]] int64_t offset(size_t row) const {
    return field_.kind == ArrowKind::List ? arrow_number<int32_t>(values_, row) : arrow_number<int64_t>(values_, row);
  }

  [[nodiscard]] size_t rows_of_children(size_t rows) const {
    if (field_.kind == ArrowKind::Struct || rows == 0) return rows;
    if (field_.kind == ArrowKind::FixedSizeList) {
      if (field_.list_size != 0 && rows > SIZE_MAX / field_.list_size) throw Damage("its lists have too many elements");
      return rows * field_.list_size;
    }
    const int64_t last = offset(rows);
    if (last < 0) throw Damage(fmt::format("a list ends at element {}", last));
    return static_cast<size_t>(last);
  }

  void add_integer(std::string& json, size_t row) const {
    const auto add = [&](auto number) { fmt::format_to(std::back_inserter(json), "{}", number); };
    const bool is_signed = field_.is_signed;
    switch (field_.bits) {
      case 8:
        return is_signed ? add(int{arrow_number<int8_t>(values_, row)}) : add(int{arrow_number<uint8_t>(values_, row)});
      case 16:
        return is_signed ? add(arrow_number<int16_t>(values_, row)) : add(arrow_number<uint16_t>(values_, row));
      case 32:
        return is_signed ? add(arrow_number<int32_t>(values_, row)) : add(arrow_number<uint32_t>(values_, row));
      default:
        return is_signed ? add(arrow_number<int64_t>(values_, row)) : add(arrow_number<uint64_t>(values_, row));
    }
  }

  void add_struct(std::string& json, size_t row) const {
    json += '{';
    for (size_t i = 0; i < children_.size(); ++i) {
      if (i > 0) json += ',';
      add_json_text(json, field_.children[i].name);
      json += ':';
      children_[i]->add(json, row);
    }
    json += '}';
  }

  void add_list(std::string& json, size_t row) const {
    const bool is_fixed = field_.kind == ArrowKind::FixedSizeList;
    const int64_t begin = is_fixed ? static_cast<int64_t>(row * field_.list_size) : offset(row);
    const int64_t end = is_fixed ? begin + static_cast<int64_t>(field_.list_size) : offset(row + 1);
    if (begin < 0 || end < begin || std::cmp_greater(end, children_.front()->rows_))
      throw Damage(fmt::format("a list goes from element {} to {} of {}", begin, end, children_.front()->rows_));
    json += '[';
    for (int64_t i = begin; i < end; ++i) {
      if (i > begin) json += ',';
      children_.front()->add(json, static_cast<size_t>(i));
    }
    json += ']';
  }

  const ArrowField& field_;
  size_t rows_ = 0;
  std::string_view validity_, values_;  ///< values_: numbers, bits, or offsets, one more than rows
  std::optional<ArrowTexts> texts_;
  std::vector<std::unique_ptr<const Values>> children_;
};

ArrowRecords::ArrowRecords(const fbs::RecordBatch& batch, std::string_view body, const std::vector<ArrowField>& fields)
    : buffers_(batch, body) {
  for (const ArrowField& field : fields) {
    rows_ = buffers_.rows(field.place.node);
    columns_.emplace_back(field.name, std::make_unique<const Values>(buffers_, field, rows_));
  }
}

ArrowRecords::~ArrowRecords() = default;

std::string ArrowRecords::json(size_t row) const {
  std::string json;
  for (const auto& [name, values] : columns_) {
    json += json.empty() ? '{' : ',';
    add_json_text(json, name);
    json += ':';
    values->add(json, row);
  }
  return json + '}';
}

}  // namespace trainyard::data
