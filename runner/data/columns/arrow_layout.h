#pragma once

#include <arrow_generated.h>

#include <cstddef>
#include <string>
#include <vector>

#include "data/columns/record_columns.h"

namespace trainyard::data {

/// How texts lie in the buffers of a record batch: by offsets of 4 or of 8 bytes, or as views of 16 bytes.
enum class TextLayout { Offsets32, Offsets64, Views };

/// Where a column is in the flat lists of every record batch, by the layouts of Arrow's columnar format.
struct ArrowPlace {
  TextLayout layout = TextLayout::Offsets32;
  size_t node = 0;          ///< in RecordBatch.nodes
  size_t buffer = 0;        ///< in RecordBatch.buffers: of its validity, which the others follow
  size_t views_before = 0;  ///< columns of views, each of which has a count of data buffers
};

/// The place of the top-level column with this name; `message` is the first of a file, its schema. Throws NotOffered
/// where the schema has no such column, or where it holds no text; the message names the columns that do.
ArrowPlace place_of(const fbs::Message& message, const std::string& column);

/// What a column holds; all that is no JSON is passed over.
enum class ArrowKind { Text, Integer, Float, Boolean, List, LargeList, FixedSizeList, Struct, PassedOver };

struct ArrowField {
  std::string name;
  ArrowKind kind = ArrowKind::PassedOver;
  ArrowPlace place{};
  unsigned bits = 0;       ///< of a number: 8 to 64
  bool is_signed = false;  ///< of an integer
  size_t list_size = 0;    ///< of each of a FixedSizeList
  std::vector<ArrowField> children{};
};

/// The fields of a record of `columns`, as place_of().
std::vector<ArrowField> fields_of(const fbs::Message& message, const RecordColumns& columns);

}  // namespace trainyard::data
