// Columns of lists and structs, of Parquet and of Arrow. The files are records/make.py's.
#include <catch2/catch.hpp>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "data/columns/arrow.h"
#include "data/columns/open_column.h"
#include "data/columns/parquet.h"
#include "support/support.h"

namespace trainyard::data {
namespace {
namespace fs = std::filesystem;
using nlohmann::ordered_json;

const fs::path kRecordFiles = test::in_repository("tests/unit/data/records");
const std::vector<std::string> kRecordTables{"v1.parquet",  "v2.parquet",  "plain.parquet", "delta.parquet",
                                             "plain.arrow", "large.arrow", "zstd.arrow"};
const RecordColumns kRecordColumns{.needed = "messages", .optional = {"other", "input_ids", "tools"}};

std::vector<ordered_json> expected_records() {
  std::vector<ordered_json> rows;
  std::istringstream lines(read_file(kRecordFiles / "rows.jsonl"));
  for (std::string line; std::getline(lines, line);) rows.push_back(ordered_json::parse(line));
  return rows;
}

std::vector<ordered_json> records_of(TextColumn& column) {
  std::vector<ordered_json> rows;
  while (const auto some = column.next())
    some->for_each([&](std::string_view text, int64_t row) {
      if (row != std::ssize(rows) + 1) FAIL("row " << row << " comes after " << rows.size());
      rows.push_back(ordered_json::parse(text));
    });
  CHECK(column.rows() == std::ssize(rows));
  return rows;
}

}  // namespace

TEST_CASE("records: lists, structs, texts, numbers and nulls within one another are those that pyarrow wrote",
          "[data]") {
  const auto rows = expected_records();
  REQUIRE(rows.size() == 40);
  for (const std::string& name : kRecordTables) {
    CAPTURE(name);
    const auto read = records_of(*open_record_columns(kRecordFiles / name, kRecordColumns));
    REQUIRE(read.size() == rows.size());
    for (size_t row = 0; row < rows.size(); ++row) CHECK(read[row] == rows[row]);
    const auto lists = records_of(*open_record_columns(kRecordFiles / name, {.needed = "input_ids"}));
    for (size_t row = 0; row < rows.size(); ++row)
      CHECK(lists[row] == ordered_json{{"input_ids", rows[row]["input_ids"]}});
  }
}

TEST_CASE("records: a column that is not there is refused with those that are", "[data]") {
  using Catch::Contains;
  CHECK_THROWS_WITH(
      open_record_columns(kRecordFiles / "v1.parquet", {.needed = "message"}),
      Contains("v1.parquet: has no column 'message' (did you mean 'messages'?); its columns: id, messages"));
  CHECK_THROWS_WITH(open_record_columns(kRecordFiles / "plain.arrow", {.needed = "message"}),
                    Contains("plain.arrow: no column 'message', did you mean 'messages'?; the file has id, messages"));
}

TEST_CASE("records: of a file with changed bytes all rows are read, or it is refused", "[data]") {
  for (const std::string name : {"v1.parquet", "plain.parquet", "delta.parquet", "plain.arrow"}) {
    const std::string content = read_file(kRecordFiles / name);
    const bool is_parquet = name.ends_with("parquet");
    size_t refused = 0;
    for (size_t at = 0; at < content.size(); at += 23) {
      std::string changed = content;
      changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
      try {
        FileContent file{.name = name, .bytes = changed, .memory = nullptr};
        const auto column = is_parquet ? read_parquet(file, kRecordColumns) : read_arrow(file, kRecordColumns);
        int64_t rows = 0;
        while (const auto some = column->next()) some->for_each([&](std::string_view, int64_t) { ++rows; });
        CHECK(rows == column->rows());
      } catch (const InputError& error) {
        CHECK_THAT(error.what(), Catch::StartsWith(name + ": "));
        ++refused;
      }
    }
    CHECK(refused > 0);
  }
}

}  // namespace trainyard::data
