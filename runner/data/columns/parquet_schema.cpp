#include "data/columns/parquet_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "data/columns/damage.h"

namespace trainyard::data::parquet {
namespace {

struct TopColumn {
  SchemaElement element;
  size_t first_leaf = 0;
};

/// The children of the root. A group's columns are passed over, however deep they go.
std::vector<TopColumn> top_columns(std::span<const SchemaElement> schema) {
  if (schema.empty()) throw Damage("its metadata lacks a schema");
  std::vector<TopColumn> columns;
  size_t at = 1, leaf = 0;
  for (int32_t i = 0; i < schema.front().children; ++i) {
    if (at < schema.size()) columns.push_back({schema[at], leaf});
    for (int64_t open = 1; open > 0; --open, ++at) {
      if (at >= schema.size()) throw Damage("its schema ends inside a group of columns");
      open += schema[at].children;
      if (schema[at].children == 0 && schema[at].type) ++leaf;
    }
  }
  return columns;
}

std::string_view logical_name(LogicalType type) {
  switch (type) {
    case LogicalType::String: return "text";
    case LogicalType::Map: return "maps";
    case LogicalType::List: return "lists";
    case LogicalType::Enum: return "words of an enumeration";
    case LogicalType::Decimal: return "decimal numbers";
    case LogicalType::Date: return "dates";
    case LogicalType::Time: return "times of day";
    case LogicalType::Timestamp: return "points in time";
    case LogicalType::Integer: return "whole numbers";
    case LogicalType::Unknown: return "nothing but nulls";
    case LogicalType::Json: return "JSON";
    case LogicalType::Bson: return "BSON";
    case LogicalType::Uuid: return "UUIDs";
    case LogicalType::Float16: return "numbers of 16 bits";
    case LogicalType::Variant: return "variants";
    case LogicalType::Geometry:
    case LogicalType::Geography: return "shapes on a map";
  }
  return "values of a type that is not known here";
}

/// What converted types, the older ones, are called since.
LogicalType logical_type_of(ConvertedType type) {
  switch (type) {
    case ConvertedType::Utf8: return LogicalType::String;
    case ConvertedType::Map:
    case ConvertedType::MapKeyValue: return LogicalType::Map;
    case ConvertedType::List: return LogicalType::List;
    case ConvertedType::Enum: return LogicalType::Enum;
    case ConvertedType::Decimal: return LogicalType::Decimal;
    case ConvertedType::Date: return LogicalType::Date;
    case ConvertedType::TimeMillis:
    case ConvertedType::TimeMicros: return LogicalType::Time;
    case ConvertedType::TimestampMillis:
    case ConvertedType::TimestampMicros: return LogicalType::Timestamp;
    case ConvertedType::Json: return LogicalType::Json;
    case ConvertedType::Bson: return LogicalType::Bson;
    case ConvertedType::Interval: return LogicalType::Time;
    default: return LogicalType::Integer;
  }
}

std::optional<LogicalType> meaning_of(const SchemaElement& element) {
  if (element.logical_type || !element.converted_type) return element.logical_type;
  return logical_type_of(*element.converted_type);
}

std::string_view physical_name(PhysicalType type) {
  switch (type) {
    case PhysicalType::Boolean: return "true or false";
    case PhysicalType::Int32: return "whole numbers of 32 bits";
    case PhysicalType::Int64: return "whole numbers of 64 bits";
    case PhysicalType::Int96: return "points in time";
    case PhysicalType::Float: return "numbers of 32 bits";
    case PhysicalType::Double: return "numbers of 64 bits";
    case PhysicalType::ByteArray: return "bytes";
    case PhysicalType::FixedLenByteArray: return "bytes of a fixed length";
  }
  return "values of a type that is not known here";
}

/// What a column holds, in plain words.
std::string_view content_of(const SchemaElement& element) {
  const auto meaning = meaning_of(element);
  if (element.repetition == Repetition::Repeated) return "lists";
  if (meaning) return logical_name(*meaning);
  return element.type ? physical_name(*element.type) : "structs";
}

/// Bytes of no meaning are text too: that is how Impala and early Spark wrote strings.
bool is_text(const SchemaElement& element) {
  const auto meaning = meaning_of(element);
  return element.type == PhysicalType::ByteArray && element.children == 0 &&
         element.repetition != Repetition::Repeated &&
         (!meaning || meaning == LogicalType::String || meaning == LogicalType::Json || meaning == LogicalType::Enum);
}

std::string offered(const std::vector<std::string>& names) {
  if (names.empty()) return "it has no column of text";
  return fmt::format("its columns of text: {}", shortened(names));
}

}  // namespace

TextLeaf find_text_column(std::span<const SchemaElement> schema, const std::string& name) {
  const std::vector<TopColumn> columns = top_columns(schema);
  std::vector<std::string> names;
  for (const TopColumn& column : columns)
    if (is_text(column.element)) names.emplace_back(column.element.name);
  const auto found = std::ranges::find(columns, name, [](const TopColumn& column) { return column.element.name; });
  if (found == columns.end()) {
    const auto near = nearest(name, names);
    throw NotOffered(fmt::format("has no column '{}'{}; {}", name,
                                 near ? fmt::format(" (did you mean '{}'?)", *near) : "", offered(names)));
  }
  if (!is_text(found->element))
    throw NotOffered(
        fmt::format("the column '{}' holds {}, no text; {}", name, content_of(found->element), offered(names)));
  return {.number = found->first_leaf, .is_nullable = found->element.repetition == Repetition::Optional};
}

namespace {

/// Reads the tree of a schema, which lists its nodes depth first.
class RecordBuilder {
 public:
  explicit RecordBuilder(std::span<const SchemaElement> schema) : schema_(schema) {
    if (schema.empty()) throw Damage("its metadata lacks a schema");
  }

  Record build(const RecordColumns& columns) {
    std::vector<std::string> names;
    for (int32_t i = 0; i < schema_.front().children; ++i) {
      const std::string name(next().name);
      is_wanted_ = name == columns.needed || std::ranges::find(columns.optional, name) != columns.optional.end();
      RecordNode column = node({});
      if (is_wanted_) record_.columns.push_back(std::move(column));
      names.push_back(name);
    }
    if (std::ranges::find(names, columns.needed) != names.end()) return std::move(record_);
    const auto near = nearest(columns.needed, names);
    throw NotOffered(fmt::format("has no column '{}'{}; its columns: {}", columns.needed,
                                 near ? fmt::format(" (did you mean '{}'?)", *near) : "", shortened(names)));
  }

 private:
  struct Levels {
    unsigned repetition = 0, definition = 0, depth = 0;
  };

  const SchemaElement& next() const {
    if (at_ >= schema_.size()) throw Damage("its schema ends inside a group of columns");
    return schema_[at_];
  }

  /// The node that comes next, within `around`.
  RecordNode node(Levels around) {
    const SchemaElement& element = next();
    if (element.repetition == Repetition::Optional) ++around.definition;
    if (element.repetition != Repetition::Repeated) return content(around);
    return list(std::string(element.name), around, [&](const Levels& inside) { return content(inside); });
  }

  /// `element` makes the node of its elements.
  template <class Element>
  RecordNode list(std::string name, const Levels& around, const Element& element) {
    const Levels inside{around.repetition + 1, around.definition + 1, around.depth};
    RecordNode made{.name = std::move(name),
                    .kind = RecordNode::Kind::List,
                    .definition = around.definition,
                    .repetition = inside.repetition,
                    .element_definition = inside.definition};
    made.children.push_back(element(inside));
    return with_children(std::move(made));
  }

  /// Without the node's own repetition.
  RecordNode content(Levels around) {
    constexpr unsigned kDeepest = 64;
    if (++around.depth > kDeepest) throw Damage(fmt::format("its schema is more than {} groups deep", kDeepest));
    const SchemaElement& element = schema_[at_++];
    RecordNode made{.name = std::string(element.name), .definition = around.definition};
    if (element.children == 0) return leaf(element, around, std::move(made));
    const auto meaning = meaning_of(element);
    if (meaning == LogicalType::List && element.children == 1 && next().repetition == Repetition::Repeated)
      return list(made.name, around, [&](const Levels& inside) { return element_of(made.name, inside); });
    const bool was_wanted = std::exchange(is_wanted_, is_wanted_ && meaning != LogicalType::Map);
    for (int32_t i = 0; i < element.children; ++i) made.children.push_back(node(around));
    is_wanted_ = was_wanted;
    made.kind = RecordNode::Kind::Struct;
    return with_children(std::move(made));
  }

  /// A list has a repeated group with its element in it. What older writers wrote is told by how many columns that has,
  /// and by its name (LogicalTypes.md, "Backward-compatibility rules").
  RecordNode element_of(const std::string& list, const Levels& inside) {
    const SchemaElement& repeated = next();
    if (repeated.children != 1 || repeated.name == "array" || repeated.name == list + "_tuple") return content(inside);
    ++at_;
    return node(inside);
  }

  RecordNode leaf(const SchemaElement& element, const Levels& around, RecordNode made) {
    if (!element.type) return made;
    const size_t number = leaves_++;
    if (!is_wanted_ || !is_json(element)) return made;
    made.kind = RecordNode::Kind::Leaf;
    made.leaf = record_.leaves.size();
    record_.leaves.push_back({.name = made.name,
                              .number = number,
                              .type = *element.type,
                              .repetition = around.repetition,
                              .definition = around.definition});
    return made;
  }

  static bool is_json(const SchemaElement& element) {
    const auto meaning = meaning_of(element);
    switch (*element.type) {
      case PhysicalType::ByteArray:
        return !meaning || meaning == LogicalType::String || meaning == LogicalType::Json ||
               meaning == LogicalType::Enum;
      case PhysicalType::Int32:
      case PhysicalType::Int64:
        return !meaning || meaning == LogicalType::Integer;
      case PhysicalType::Boolean:
      case PhysicalType::Float:
      case PhysicalType::Double:
        return true;
      default:
        return false;
    }
  }

  /// The first leaf inside tells what is there; where there is none, nothing does.
  static RecordNode with_children(RecordNode made) {
    const auto first = std::ranges::find_if(
        made.children, [](const RecordNode& child) { return child.kind != RecordNode::Kind::PassedOver; });
    if (first == made.children.end()) made.kind = RecordNode::Kind::PassedOver;
    if (first != made.children.end()) made.leaf = first->leaf;
    return made;
  }

  std::span<const SchemaElement> schema_;
  size_t at_ = 1, leaves_ = 0;
  bool is_wanted_ = false;
  Record record_;
};

}  // namespace

Record find_record(std::span<const SchemaElement> schema, const RecordColumns& columns) {
  return RecordBuilder(schema).build(columns);
}

}  // namespace trainyard::data::parquet
