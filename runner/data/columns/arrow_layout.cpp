#include "data/columns/arrow_layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "data/columns/damage.h"

namespace trainyard::data {
namespace {

/// Buffers of a column without its children. Those of views follow the two: their number stands in each batch.
size_t buffers_of(fbs::Type type) {
  switch (type) {
    case fbs::Type_Null:
    case fbs::Type_RunEndEncoded:
      return 0;
    case fbs::Type_Struct:
    case fbs::Type_FixedSizeList:
      return 1;
    case fbs::Type_Binary:
    case fbs::Type_Utf8:
    case fbs::Type_LargeBinary:
    case fbs::Type_LargeUtf8:
    case fbs::Type_ListView:
    case fbs::Type_LargeListView:
      return 3;
    default:
      return 2;
  }
}

size_t buffers_of(const fbs::Field& field, fbs::MetadataVersion version) {
  if (field.dictionary()) return 2;  // the indices: the texts are in batches of their own
  if (const fbs::Union* const type = field.type_as_Union()) {
    const size_t of_validity = version < fbs::MetadataVersion_V5 ? 1 : 0;
    return of_validity + (type->mode() == fbs::UnionMode_Sparse ? 1 : 2);
  }
  return buffers_of(field.type_type());
}

std::optional<TextLayout> text_layout_of(const fbs::Field& field) {
  if (field.dictionary()) return std::nullopt;
  switch (field.type_type()) {
    case fbs::Type_Utf8:
      return TextLayout::Offsets32;
    case fbs::Type_LargeUtf8:
      return TextLayout::Offsets64;
    case fbs::Type_Utf8View:
      return TextLayout::Views;
    default:
      return std::nullopt;
  }
}

bool is_of_views(const fbs::Field& field) {
  return !field.dictionary() && (field.type_type() == fbs::Type_Utf8View || field.type_type() == fbs::Type_BinaryView);
}

std::string name_of(const fbs::Field& field) {
  return field.name() ? field.name()->str() : "";
}

std::string type_name_of(const fbs::Field& field) {
  const std::string name = fbs::EnumNameType(field.type_type());
  return field.dictionary() ? "a dictionary of " + name : name;
}

/// Moves `place` behind a column and its children, which come depth first.
void pass(const fbs::Field& field, fbs::MetadataVersion version, ArrowPlace& place) {
  ++place.node;
  place.buffer += buffers_of(field, version);
  place.views_before += is_of_views(field) ? 1 : 0;
  if (!field.children() || field.dictionary()) return;
  for (const fbs::Field* const child : *field.children()) pass(*child, version, place);
}

ArrowKind kind_of(const fbs::Field& field) {
  if (text_layout_of(field)) return ArrowKind::Text;
  if (field.dictionary()) return ArrowKind::PassedOver;
  switch (field.type_type()) {
    case fbs::Type_Int:
      return ArrowKind::Integer;
    case fbs::Type_FloatingPoint:
      return ArrowKind::Float;
    case fbs::Type_Bool:
      return ArrowKind::Boolean;
    case fbs::Type_List:
      return ArrowKind::List;
    case fbs::Type_LargeList:
      return ArrowKind::LargeList;
    case fbs::Type_FixedSizeList:
      return ArrowKind::FixedSizeList;
    case fbs::Type_Struct:
      return ArrowKind::Struct;
    default:
      return ArrowKind::PassedOver;
  }
}

unsigned bits_of(const fbs::Field& field) {
  if (const fbs::FloatingPoint* const type = field.type_as_FloatingPoint()) return 16U << type->precision();
  const fbs::Int* const type = field.type_as_Int();
  return type ? static_cast<unsigned>(type->bit_width()) : 0;
}

/// Moves `place` as pass() does.
ArrowField field_at(const fbs::Field& field, fbs::MetadataVersion version, ArrowPlace& place) {
  ArrowField made{.name = name_of(field), .kind = kind_of(field), .place = place, .bits = bits_of(field)};
  if (made.kind == ArrowKind::Text) made.place.layout = *text_layout_of(field);
  const bool is_number = made.kind == ArrowKind::Integer || made.kind == ArrowKind::Float;
  if (is_number && made.bits != 8 && made.bits != 16 && made.bits != 32 && made.bits != 64)
    throw Damage(fmt::format("its schema has a number of {} bits", made.bits));
  if (made.kind == ArrowKind::Float && made.bits == 16) made.kind = ArrowKind::PassedOver;
  if (const fbs::Int* const type = field.type_as_Int()) made.is_signed = type->is_signed();
  const size_t children = field.children() ? field.children()->size() : 0;
  if (const fbs::FixedSizeList* const type = field.type_as_FixedSizeList()) {
    if (type->list_size() < 0) throw Damage(fmt::format("its schema has lists of {}", type->list_size()));
    made.list_size = static_cast<size_t>(type->list_size());
  }
  const bool is_list =
      made.kind == ArrowKind::List || made.kind == ArrowKind::LargeList || made.kind == ArrowKind::FixedSizeList;
  if (is_list && children != 1) throw Damage(fmt::format("its schema has a list of {} columns", children));
  if (!is_list && made.kind != ArrowKind::Struct) {
    pass(field, version, place);
    return made;
  }
  ++place.node;
  place.buffer += buffers_of(field, version);
  for (size_t i = 0; i < children; ++i)
    made.children.push_back(field_at(*field.children()->Get(static_cast<flatbuffers::uoffset_t>(i)), version, place));
  return made;
}

[[noreturn]] void refuse(const fbs::Schema& schema, const std::string& column) {
  std::vector<std::string> names, texts;
  std::string type;
  for (const fbs::Field* const field : *schema.fields()) {
    names.push_back(name_of(*field));
    if (text_layout_of(*field)) texts.push_back(names.back());
    if (names.back() == column) type = type_name_of(*field);
  }
  const auto near = type.empty() ? nearest(column, names) : std::nullopt;
  const std::string what =
      type.empty() ? fmt::format("no column '{}'{}", column, near ? fmt::format(", did you mean '{}'?", *near) : "")
                   : fmt::format("the column '{}' is of the type {}", column, type);
  const std::string rest = texts.empty() ? "has none of text" : fmt::format("has text in {}", fmt::join(texts, ", "));
  throw NotOffered(fmt::format("{}; the file {}", what, rest));
}

const fbs::Schema& schema_of(const fbs::Message& message) {
  const fbs::Schema* const schema = message.header_as_Schema();
  if (!schema) throw Damage("it does not begin with a schema");
  if (schema->endianness() != fbs::Endianness_Little)
    throw NotOffered(
        "was written by a machine that stores numbers the other way round (big-endian), which is not read");
  if (!schema->fields()) throw Damage("its schema has no columns");
  return *schema;
}

[[noreturn]] void refuse_record(const fbs::Schema& schema, const std::string& column) {
  std::vector<std::string> names;
  for (const fbs::Field* const field : *schema.fields()) names.push_back(name_of(*field));
  const auto near = nearest(column, names);
  throw NotOffered(fmt::format("no column '{}'{}; the file has {}", column,
                               near ? fmt::format(", did you mean '{}'?", *near) : "", shortened(names)));
}

}  // namespace

ArrowPlace place_of(const fbs::Message& message, const std::string& column) {
  const fbs::Schema& schema = schema_of(message);
  ArrowPlace place;
  for (const fbs::Field* const field : *schema.fields()) {
    const auto layout = text_layout_of(*field);
    if (name_of(*field) == column) {
      if (!layout) break;
      place.layout = *layout;
      return place;
    }
    pass(*field, message.version(), place);
  }
  refuse(schema, column);
}

std::vector<ArrowField> fields_of(const fbs::Message& message, const RecordColumns& columns) {
  const fbs::Schema& schema = schema_of(message);
  ArrowPlace place;
  std::vector<ArrowField> fields;
  bool has_needed = false;
  for (const fbs::Field* const field : *schema.fields()) {
    const std::string name = name_of(*field);
    const bool is_needed = name == columns.needed;
    has_needed = has_needed || is_needed;
    ArrowField made = field_at(*field, message.version(), place);
    if (is_needed || std::ranges::find(columns.optional, name) != columns.optional.end())
      fields.push_back(std::move(made));
  }
  if (!has_needed) refuse_record(schema, columns.needed);
  return fields;
}

}  // namespace trainyard::data
