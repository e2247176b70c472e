#include "data/columns/parquet_records.h"

#include <fmt/format.h>

#include "data/columns/damage.h"
#include "data/columns/record_rows.h"

namespace trainyard::data::parquet {

std::string RecordReader::next() {
  std::string json;
  for (const RecordNode& column : record_.columns) {
    json += json.empty() ? '{' : ',';
    add_json_text(json, column.name);
    json += ':';
    add(column, 0, json);
  }
  return json + '}';
}

void RecordReader::expect_end() const {
  for (const auto& leaf : leaves_)
    if (!leaf->is_at_end()) throw Damage("a column has values behind the last row of its row group");
}

/// The next entry of a leaf, which is to begin where all around it does.
LeafReader& RecordReader::entry(size_t leaf, unsigned repetition) {
  LeafReader& reader = *leaves_[leaf];
  if (reader.is_at_end()) throw Damage("a column ends before the last row of its row group");
  if (reader.repetition() != repetition)
    throw Damage(
        fmt::format("a value has the repetition level {} where others have {}", reader.repetition(), repetition));
  return reader;
}

void RecordReader::add(const RecordNode& node, unsigned repetition, std::string& json) {
  require_row_size(json);
  if (node.kind == RecordNode::Kind::PassedOver) return static_cast<void>(json += "null");
  if (entry(node.leaf, repetition).definition() < node.definition) {
    pass(node, repetition, node.definition);
    json += "null";
    return;
  }
  switch (node.kind) {
    case RecordNode::Kind::Struct:
      return add_struct(node, repetition, json);
    case RecordNode::Kind::List:
      return add_list(node, repetition, json);
    default:
      return entry(node.leaf, repetition).take_value(json);
  }
}

void RecordReader::add_struct(const RecordNode& node, unsigned repetition, std::string& json) {
  json += '{';
  for (size_t i = 0; i < node.children.size(); ++i) {
    if (i > 0) json += ',';
    add_json_text(json, node.children[i].name);
    json += ':';
    add(node.children[i], repetition, json);
  }
  json += '}';
}

void RecordReader::add_list(const RecordNode& node, unsigned repetition, std::string& json) {
  json += '[';
  if (entry(node.leaf, repetition).definition() < node.element_definition) {
    pass(node, repetition, node.element_definition);
  } else {
    const LeafReader& leaf = *leaves_[node.leaf];
    add(node.children.front(), repetition, json);
    while (!leaf.is_at_end() && leaf.repetition() == node.repetition) {
      json += ',';
      add(node.children.front(), node.repetition, json);
    }
  }
  json += ']';
}

/// Each leaf has one entry for what is not there, with a level `below` that of what is.
void RecordReader::pass(const RecordNode& node, unsigned repetition, unsigned below) {
  if (node.kind == RecordNode::Kind::Leaf) {
    LeafReader& reader = entry(node.leaf, repetition);
    if (reader.definition() >= below) throw Damage("a column has a value in what others say is not there");
    reader.pass();
  }
  for (const RecordNode& child : node.children) pass(child, repetition, below);
}

}  // namespace trainyard::data::parquet
