#include "data/columns/arrow_layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
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

}  // namespace

ArrowPlace place_of(const fbs::Message& message, const std::string& column) {
  const fbs::Schema* const in_message = message.header_as_Schema();
  if (!in_message) throw Damage("it does not begin with a schema");
  const fbs::Schema& schema = *in_message;
  const fbs::MetadataVersion version = message.version();
  if (schema.endianness() != fbs::Endianness_Little)
    throw NotOffered(
        "was written by a machine that stores numbers the other way round (big-endian), which is not read");
  if (!schema.fields()) throw Damage("its schema has no columns");
  ArrowPlace place;
  for (const fbs::Field* const field : *schema.fields()) {
    const auto layout = text_layout_of(*field);
    if (name_of(*field) == column) {
      if (!layout) break;
      place.layout = *layout;
      return place;
    }
    pass(*field, version, place);
  }
  refuse(schema, column);
}

}  // namespace trainyard::data
