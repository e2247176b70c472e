#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

// What Parquet's metadata say, as far as a column of text needs it (github.com/apache/parquet-format,
// src/main/thrift/parquet.thrift). Numbers of enumerations are the file's and may be others than those with names.
namespace trainyard::data::parquet {

enum class PhysicalType : int32_t { Boolean, Int32, Int64, Int96, Float, Double, ByteArray, FixedLenByteArray };
enum class Repetition : int32_t { Required, Optional, Repeated };
enum class ConvertedType : int32_t {
  Utf8, Map, MapKeyValue, List, Enum, Decimal, Date, TimeMillis, TimeMicros, TimestampMillis, TimestampMicros,
  UInt8, UInt16, UInt32, UInt64, Int8, Int16, Int32, Int64, Json, Bson, Interval,
};
enum class LogicalType : int32_t {
  String = 1, Map = 2, List = 3, Enum = 4, Decimal = 5, Date = 6, Time = 7, Timestamp = 8, Integer = 10, Unknown = 11,
  Json = 12, Bson = 13, Uuid = 14, Float16 = 15, Variant = 16, Geometry = 17, Geography = 18,
};
enum class CompressionCodec : int32_t { Uncompressed, Snappy, Gzip, Lzo, Brotli, Lz4, Zstd, Lz4Raw };
enum class Encoding : int32_t {
  Plain = 0, PlainDictionary = 2, Rle = 3, BitPacked = 4, DeltaBinaryPacked = 5, DeltaLengthByteArray = 6,
  DeltaByteArray = 7, RleDictionary = 8, ByteStreamSplit = 9,
};
enum class PageType : int32_t { Data, Index, Dictionary, DataV2 };

/// A node of the schema, which lists them depth first, the root before all.
struct SchemaElement {
  std::string_view name;  ///< in the footer
  std::optional<PhysicalType> type;  ///< none: a group of columns
  Repetition repetition = Repetition::Required;
  int32_t children = 0;
  std::optional<ConvertedType> converted_type;
  std::optional<LogicalType> logical_type;
};

struct FileMetaData {
  int64_t rows = 0;
  std::vector<SchemaElement> schema;
};

/// A column in a row group. Offsets and sizes are as the file says, which may be any numbers.
struct ColumnChunk {
  CompressionCodec codec = CompressionCodec::Uncompressed;
  int64_t values = 0;        ///< nulls among them
  int64_t packed_bytes = 0;  ///< of all its pages and their headers
  int64_t data_page_offset = 0;
  std::optional<int64_t> dictionary_page_offset;
  bool is_encrypted = false;
  bool is_elsewhere = false;  ///< in another file
};

struct RowGroup {
  int64_t rows = 0;
  ColumnChunk column;
};

struct PageHeader {
  size_t bytes = 0;  ///< of the header itself
  PageType type = PageType::Data;
  size_t packed_bytes = 0, unpacked_bytes = 0;  ///< of what follows it
  std::optional<uint32_t> crc;                  ///< of what follows it
  int64_t values = 0;                           ///< nulls among them
  Encoding encoding = Encoding::Plain;
  Encoding level_encoding = Encoding::Rle;       ///< V1
  Encoding repetition_encoding = Encoding::Rle;  ///< V1
  size_t level_bytes = 0;                   ///< V2: of definition levels, which follow those of repetition
  size_t repetition_bytes = 0;              ///< V2
  bool is_packed = true;                    ///< V2: what follows the levels
};

/// These throw Damage where a struct is cut off, lacks what it needs or has negative sizes.
FileMetaData read_file_metadata(std::string_view footer);
/// Of the columns only that of number `column`, counted through the leaves of the schema.
std::vector<RowGroup> read_row_groups(std::string_view footer, size_t column);
/// A header stands at the beginning of `bytes`.
PageHeader read_page_header(std::string_view bytes);

}  // namespace trainyard::data::parquet
