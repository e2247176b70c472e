// What a damaged file, or one that somebody made to do harm, ends with.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "data/columns/parquet.h"
#include "support/support.h"

namespace trainyard::data::parquet {
namespace {
using Lines = std::vector<std::string>;

std::string bytes_of(const std::string& name) {
  return read_file(test::in_repository("tests/unit/data/parquet") / (name + ".parquet"));
}

Lines lines_of(const std::string& bytes, const std::string& column) {
  const auto opened = read_parquet({.name = "x.parquet", .bytes = bytes}, column);
  Lines lines;
  while (const auto part = opened->next())
    part->for_each([&](std::string_view text, int64_t) { lines.emplace_back(text); });
  return lines;
}

/// The texts, or nothing but what was refused.
Lines outcome_of(const std::string& bytes, const std::string& column) {
  try {
    return lines_of(bytes, column);
  } catch (const InputError& error) {
    return {error.what()};
  }
}

bool is_refusal(const Lines& outcome) {
  return outcome.size() == 1 && outcome.front().starts_with("x.parquet: ");
}

std::string damaged(const std::string& how) {
  return "x.parquet: is damaged: " + how + "; get it again";
}

std::string damaged_page(const std::string& how) {
  return damaged("its page at byte 4: " + how);
}

/// A struct in Thrift's compact protocol, whose fields are added in the order of their numbers.
class Struct {
 public:
  Struct& integer(int field, int64_t value) {
    return add(field, 6, varint(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63)));
  }
  Struct& text(int field, const std::string& value) { return add(field, 8, varint(value.size()) + value); }
  Struct& nested(int field, const Struct& value) { return add(field, 12, value.bytes()); }
  Struct& list(int field, const std::vector<Struct>& values) {
    std::string content(1, static_cast<char>(values.size() << 4 | 12));
    for (const Struct& value : values) content += value.bytes();
    return add(field, 9, content);
  }
  [[nodiscard]] std::string bytes() const { return bytes_ + '\0'; }

 private:
  static std::string varint(uint64_t value) {
    std::string bytes;
    for (; value > 0x7F; value >>= 7) bytes += static_cast<char>(value | 0x80);
    return bytes + static_cast<char>(value);
  }
  Struct& add(int field, int type, const std::string& value) {
    bytes_ += static_cast<char>((field - last_) << 4 | type);
    bytes_ += value;
    last_ = field;
    return *this;
  }

  std::string bytes_;
  int last_ = 0;
};

std::string little_endian(size_t value) {
  std::string bytes;
  for (const int shift : {0, 8, 16, 24}) bytes += static_cast<char>(value >> shift);
  return bytes;
}

std::string plain(const std::string& text) {
  return little_endian(text.size()) + text;
}

/// A file of the column 'text' in one page: what says so, piece by piece.
struct Made {
  std::string content = plain("one") + plain("two");
  int64_t file_rows = 2, group_rows = 2, column_values = 2, page_values = 2, children = 1;
  int64_t repetition = 0, codec = 0, encoding = 0, level_encoding = 3, page_offset = 4, page_type = 0;
  std::optional<int64_t> unpacked_bytes, packed_bytes, column_bytes;
  bool is_elsewhere = false, is_encrypted = false;
};

std::string page_of(const Made& made) {
  const auto size = static_cast<int64_t>(made.content.size());
  Struct header;
  header.integer(1, made.page_type);
  header.integer(2, made.unpacked_bytes.value_or(size)).integer(3, made.packed_bytes.value_or(size));
  header.nested(5, Struct().integer(1, made.page_values).integer(2, made.encoding).integer(3, made.level_encoding));
  return header.bytes() + made.content;
}

std::string footer_of(const Made& made, size_t page_size) {
  const Struct schema = Struct().text(4, "schema").integer(5, made.children);
  const Struct text = Struct().integer(1, 6).integer(3, made.repetition).text(4, "text");
  Struct metadata, chunk;
  metadata.integer(4, made.codec).integer(5, made.column_values);
  metadata.integer(7, made.column_bytes.value_or(static_cast<int64_t>(page_size))).integer(9, made.page_offset);
  if (made.is_elsewhere) chunk.text(1, "part-1.parquet");
  if (made.is_encrypted)
    chunk.nested(8, Struct());
  else
    chunk.nested(3, metadata);
  const Struct group = Struct().list(1, {chunk}).integer(3, made.group_rows);
  return Struct().list(2, {schema, text}).integer(3, made.file_rows).list(4, {group}).bytes();
}

std::string around(const std::string& pages, const std::string& footer) {
  return "PAR1" + pages + footer + little_endian(footer.size()) + "PAR1";
}

std::string file_of(const Made& made) {
  const std::string page = page_of(made);
  return around(page, footer_of(made, page.size()));
}

/// As all that counts rows tells it.
void set_rows(Made& made, int64_t rows) {
  made.file_rows = made.group_rows = made.column_values = made.page_values = rows;
}

Lines outcome_with(const std::function<void(Made&)>& change) {
  Made made;
  change(made);
  return outcome_of(file_of(made), "text");
}

}  // namespace

TEST_CASE("parquet: a file that is cut off at any byte is refused", "[data]") {
  const std::string whole = bytes_of("checksums_v1");
  for (size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    const Lines outcome = outcome_of(whole.substr(0, size), "plain");
    REQUIRE(is_refusal(outcome));
    if (size < 4) continue;
    REQUIRE(outcome.front() == "x.parquet: is cut off: it begins as a Parquet file and does not end as one, with PAR1; "
                               "get it again");
  }
}

TEST_CASE("parquet: with checksums a byte that changed gives the texts that were written or is refused", "[data]") {
  const std::string file = GENERATE("checksums_v1", "checksums_v2"), column = GENERATE("plain", "dictionary");
  std::string bytes = bytes_of(file);
  const Lines written = lines_of(bytes, column);
  for (size_t at = 0; at < bytes.size(); ++at)
    for (const int change : {1, 2, 4, 8, 16, 32, 64, 128, 255}) {
      const char before = bytes[at];
      bytes[at] = static_cast<char>(before ^ change);
      const Lines outcome = outcome_of(bytes, column);
      if (outcome != written && !is_refusal(outcome))
        FAIL(fmt::format("{}, {}: byte {} ^ {}", file, column, at, change));
      bytes[at] = before;
    }
}

TEST_CASE("parquet: a byte that changed does no harm in any codec or encoding", "[data]") {
  const std::string codec = GENERATE("none", "snappy", "gzip", "brotli", "zstd", "lz4");
  const std::string version = GENERATE("_v1", "_v2");
  const Lines columns{"plain", "dictionary", "lengths", "prefixes"};
  std::string bytes = bytes_of(codec + version);
  const Lines written = lines_of(bytes, "plain");
  for (size_t at = 0; at < bytes.size(); ++at) {
    const char before = bytes[at];
    bytes[at] = static_cast<char>(before ^ (at % 9 == 8 ? 255 : 1 << at % 9));
    const Lines outcome = outcome_of(bytes, columns[at % 4]);
    if (outcome.size() != written.size() && !is_refusal(outcome)) FAIL(fmt::format("{}: byte {}", columns[at % 4], at));
    bytes[at] = before;
  }
}

TEST_CASE("parquet: a damaged byte is told by the checksum of its page", "[data]") {
  std::string bytes = bytes_of("checksums_v2");
  bytes[bytes.find("row 1")] = 'c';
  CHECK(outcome_of(bytes, "plain") ==
        Lines{damaged_page("the checksum in its header is not that of what follows")});
}

TEST_CASE("parquet: what a file says of itself must be so", "[data]") {
  REQUIRE(lines_of(file_of({}), "text") == Lines{"one", "two"});
  const std::vector<std::pair<std::function<void(Made&)>, std::string>> cases{
      {[](Made& m) { m.page_offset = 1000; }, "a column of 29 bytes at byte 1000 goes beyond its 33 bytes of pages"},
      {[](Made& m) { m.page_offset = -5; }, "the place of a column is -5"},
      {[](Made& m) { m.column_bytes = int64_t{1} << 62; },
       "a column of 4611686018427387904 bytes at byte 4 goes beyond its 33 bytes of pages"},
      {[](Made& m) { set_rows(m, 1), m.page_values = 2; },
       "its page at byte 4 has 2 values where its column has 1 left"},
      {[](Made& m) { set_rows(m, 3), m.page_values = 2; }, "the pages of a column lack 1 of its values"},
      {[](Made& m) { m.column_values = 3; }, "a row group of 2 rows has a column of 3 values"},
      {[](Made& m) { m.file_rows = 3; }, "its row groups have 2 of 3 rows"},
      {[](Made& m) { m.file_rows = 1; }, "its row groups have more rows than the file, which has 1"},
      {[](Made& m) { m.file_rows = -1; }, "the number of rows is -1"},
      {[](Made& m) { m.children = 2; }, "its schema ends inside a group of columns"},
      {[](Made& m) { m.encoding = 8; }, "its texts are in a dictionary that is not there"},
  };
  for (const auto& [change, how] : cases) CHECK(outcome_with(change) == Lines{damaged(how)});
}

TEST_CASE("parquet: what a page says of itself must be so", "[data]") {
  const std::vector<std::pair<std::function<void(Made&)>, std::string>> cases{
      {[](Made& m) { m.packed_bytes = m.unpacked_bytes = 15; }, "a value of 15 B does not fit the 14 B that are left"},
      {[](Made& m) { m.packed_bytes = -1; }, "the size of a page is -1"},
      {[](Made& m) { m.unpacked_bytes = int64_t{1} << 40; },
       "its metadata has the number 1099511627776 where 32 bits are meant"},
      {[](Made& m) { m.unpacked_bytes = 13; }, "14 bytes that are not packed are to give 13"},
      {[](Made& m) { m.codec = 1; }, "14 bytes of Snappy do not give the 14 bytes that they are to give"},
      {[](Made& m) { m.codec = 2, m.unpacked_bytes = 1 << 30; }, "14 bytes of gzip cannot give 1073741824"},
      {[](Made& m) { m.page_type = 1; }, "the header of a page does not say what is in it"},
      {[](Made& m) { set_rows(m, 1); }, "7 B are left behind its values"},
      {[](Made& m) { set_rows(m, 3); }, "a value of 4 B does not fit the 0 B that are left"},
      {[](Made& m) { m.content = plain("one") + little_endian(0xFFFFFFFF) + "two"; },
       "a value of 4294967295 B does not fit the 3 B that are left"},
  };
  for (const auto& [change, how] : cases) CHECK(outcome_with(change) == Lines{damaged_page(how)});
}

TEST_CASE("parquet: what is not offered is refused by name", "[data]") {
  const std::vector<std::pair<std::function<void(Made&)>, std::string>> cases{
      {[](Made& m) { m.codec = 3; }, "is packed by LZO, which is not read; write it with zstd or Snappy"},
      {[](Made& m) { m.codec = 17; },
       "is packed by codec number 17, which is not known here; write it with zstd or Snappy"},
      {[](Made& m) { m.codec = 4, m.unpacked_bytes = (1 << 30) + 1; },
       "has 1.00 GiB in one piece, but pieces of up to 1.00 GiB are read; write it in smaller ones"},
      {[](Made& m) { m.encoding = 9; }, "has text in the encoding BYTE_STREAM_SPLIT, which is not read"},
      {[](Made& m) { m.encoding = 10; }, "has text in the encoding number 10, which is not read"},
      {[](Made& m) { m.repetition = 1, m.level_encoding = 4; },
       "has nulls in the encoding BIT_PACKED, which is not read"},
      {[](Made& m) { m.repetition = 2; }, "the column 'text' holds lists, no text; it has no column of text"},
      {[](Made& m) { m.is_elsewhere = true; },
       "has its columns in other files, as a _metadata does; name those instead"},
      {[](Made& m) { m.is_encrypted = true; }, "the column 'text' is encrypted, which is not read; write it without"},
  };
  for (const auto& [change, message] : cases) CHECK(outcome_with(change) == Lines{"x.parquet: " + message});
}

TEST_CASE("parquet: what is no Parquet file, or none to read, is refused", "[data]") {
  const std::string whole = file_of({});
  CHECK(outcome_of("", "text") == Lines{"x.parquet: is no Parquet file: it does not begin with PAR1"});
  CHECK(outcome_of("{\"text\": 1}\n", "text") == Lines{"x.parquet: is no Parquet file: it does not begin with PAR1"});
  const Lines encrypted{"x.parquet: is encrypted, which is not read; write it without"};
  CHECK(outcome_of(whole.substr(0, whole.size() - 4) + "PARE", "text") == encrypted);
  CHECK(outcome_of("PARE" + whole.substr(4), "text") == encrypted);
  CHECK(outcome_of("PAR1" + little_endian(4) + "PAR1", "text") ==
        Lines{damaged("its footer is to have 4 of its 12 bytes")});
  CHECK(outcome_of(around("", std::string(1000, '\x1c')), "text") ==
        Lines{damaged("its metadata is nested too deep")});
  CHECK(outcome_of(around("", "\x29\xfc\xff\xff\xff\x7f"), "text") ==
        Lines{damaged("its metadata has a list of 268435455 values in 0 bytes")});
}

}  // namespace trainyard::data::parquet
