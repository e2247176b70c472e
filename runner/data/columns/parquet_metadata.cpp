#include "data/columns/parquet_metadata.h"

#include <fmt/format.h>

#include "data/columns/damage.h"
#include "data/columns/thrift.h"

// The numbers are those of the fields in parquet.thrift.
namespace trainyard::data::parquet {
namespace {

template <class T>
T needed(const std::optional<T>& value, const char* what) {
  if (!value) throw Damage(fmt::format("its metadata lacks {}", what));
  return *value;
}

int64_t not_negative(int64_t value, const char* what) {
  if (value < 0) throw Damage(fmt::format("{} is {}", what, value));
  return value;
}

size_t size(ThriftReader& reader, const char* what) {
  return static_cast<size_t>(not_negative(reader.integer_of_32_bits(), what));
}

template <class Enum>
Enum number(ThriftReader& reader) {
  return static_cast<Enum>(reader.integer_of_32_bits());
}

/// A union: the one field that it has says which type it is.
std::optional<LogicalType> read_logical_type(ThriftReader& reader) {
  std::optional<LogicalType> type;
  reader.fields([&](int64_t field) { type = static_cast<LogicalType>(field); });
  return type;
}

SchemaElement read_schema_element(ThriftReader& reader) {
  SchemaElement element;
  std::optional<std::string_view> name;
  reader.fields([&](int64_t field) {
    switch (field) {
      case 1: element.type = number<PhysicalType>(reader); break;
      case 3: element.repetition = number<Repetition>(reader); break;
      case 4: name = reader.bytes(); break;
      case 5: element.children = reader.integer_of_32_bits(); break;
      case 6: element.converted_type = number<ConvertedType>(reader); break;
      case 10: element.logical_type = read_logical_type(reader); break;
      default: break;
    }
  });
  element.name = needed(name, "the name of a column");
  not_negative(element.children, "the number of columns in a group");
  return element;
}

void read_column_metadata(ThriftReader& reader, ColumnChunk& chunk) {
  std::optional<int64_t> values, packed_bytes, data_page_offset;
  std::optional<CompressionCodec> codec;
  reader.fields([&](int64_t field) {
    switch (field) {
      case 4: codec = number<CompressionCodec>(reader); break;
      case 5: values = reader.integer(); break;
      case 7: packed_bytes = reader.integer(); break;
      case 9: data_page_offset = reader.integer(); break;
      case 11: chunk.dictionary_page_offset = reader.integer(); break;
      default: break;
    }
  });
  chunk.codec = needed(codec, "the codec of a column");
  chunk.values = not_negative(needed(values, "the number of values of a column"), "the number of values of a column");
  chunk.packed_bytes = not_negative(needed(packed_bytes, "the size of a column"), "the size of a column");
  chunk.data_page_offset = not_negative(needed(data_page_offset, "the place of a column"), "the place of a column");
}

ColumnChunk read_column_chunk(ThriftReader& reader) {
  ColumnChunk chunk;
  bool has_metadata = false;
  reader.fields([&](int64_t field) {
    switch (field) {
      case 1: chunk.is_elsewhere = !reader.bytes().empty(); break;
      case 3: read_column_metadata(reader, chunk); has_metadata = true; break;
      case 8: chunk.is_encrypted = true; break;
      default: break;
    }
  });
  // Where the column has a key of its own, its metadata are encrypted too.
  if (!has_metadata && !chunk.is_encrypted) throw Damage("its metadata lacks those of a column");
  return chunk;
}

RowGroup read_row_group(ThriftReader& reader, size_t column) {
  std::optional<int64_t> rows;
  std::optional<ColumnChunk> chunk;
  reader.fields([&](int64_t field) {
    if (field == 3) rows = reader.integer();
    if (field != 1) return;
    size_t at = 0;
    reader.elements([&] {
      if (at++ == column) chunk = read_column_chunk(reader);
    });
  });
  return {.rows = not_negative(needed(rows, "the number of rows of a row group"), "the number of rows of a row group"),
          .column = needed(chunk, "a column of a row group")};
}

void read_data_header(ThriftReader& reader, PageHeader& header) {
  reader.fields([&](int64_t field) {
    switch (field) {
      case 1: header.values = reader.integer_of_32_bits(); break;
      case 2: header.encoding = number<Encoding>(reader); break;
      case 3: header.level_encoding = number<Encoding>(reader); break;
      case 4:
        header.repetition_encoding = number<Encoding>(reader);
        break;
      default: break;
    }
  });
}

void read_dictionary_header(ThriftReader& reader, PageHeader& header) {
  reader.fields([&](int64_t field) {
    if (field == 1) header.values = reader.integer_of_32_bits();
    if (field == 2) header.encoding = number<Encoding>(reader);
  });
}

void read_data_header_v2(ThriftReader& reader, PageHeader& header) {
  reader.fields([&](int64_t field) {
    switch (field) {
      case 1: header.values = reader.integer_of_32_bits(); break;
      case 4: header.encoding = number<Encoding>(reader); break;
      case 5: header.level_bytes = size(reader, "the size of levels"); break;
      case 6: header.repetition_bytes = size(reader, "the size of levels"); break;
      case 7: header.is_packed = reader.boolean(); break;
      default: break;
    }
  });
}

/// Whether the field of a page header that says more of the page, if any does, is the one for its type.
bool is_described(PageType type, const std::optional<int64_t>& by) {
  switch (type) {
    case PageType::Data: return by == 5;
    case PageType::Index: return !by || by == 6;
    case PageType::Dictionary: return by == 7;
    case PageType::DataV2: return by == 8;
  }
  return !by;
}

}  // namespace

FileMetaData read_file_metadata(std::string_view footer) {
  FileMetaData metadata;
  std::optional<int64_t> rows;
  ThriftReader reader(footer);
  reader.fields([&](int64_t field) {
    if (field == 2) reader.elements([&] { metadata.schema.push_back(read_schema_element(reader)); });
    if (field == 3) rows = reader.integer();
  });
  metadata.rows = not_negative(needed(rows, "the number of rows"), "the number of rows");
  return metadata;
}

std::vector<RowGroup> read_row_groups(std::string_view footer, size_t column) {
  std::vector<RowGroup> groups;
  ThriftReader reader(footer);
  reader.fields([&](int64_t field) {
    if (field == 4) reader.elements([&] { groups.push_back(read_row_group(reader, column)); });
  });
  return groups;
}

PageHeader read_page_header(std::string_view bytes) {
  PageHeader header;
  std::optional<PageType> type;
  std::optional<size_t> packed_bytes, unpacked_bytes;
  std::optional<int64_t> described;
  ThriftReader reader(bytes);
  reader.fields([&](int64_t field) {
    switch (field) {
      case 1: type = number<PageType>(reader); break;
      case 2: unpacked_bytes = size(reader, "the size of a page"); break;
      case 3: packed_bytes = size(reader, "the size of a page"); break;
      case 4: header.crc = static_cast<uint32_t>(reader.integer_of_32_bits()); break;
      case 5: read_data_header(reader, header); break;
      case 7: read_dictionary_header(reader, header); break;
      case 8: read_data_header_v2(reader, header); break;
      default: break;
    }
    if (field >= 5 && field <= 8) described = field;
  });
  header.type = needed(type, "the type of a page");
  header.packed_bytes = needed(packed_bytes, "the size of a page");
  header.unpacked_bytes = needed(unpacked_bytes, "the size of a page");
  header.bytes = bytes.size() - reader.rest().size();
  not_negative(header.values, "the number of values of a page");
  if (!is_described(header.type, described)) throw Damage("the header of a page does not say what is in it");
  return header;
}

}  // namespace trainyard::data::parquet
