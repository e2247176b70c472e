// Files that pyarrow has written, by tests/unit/data/parquet/make.py.
#include "data/columns/parquet.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>
#include <lz4.h>
#include <lz4frame.h>
#include <zlib.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "data/columns/codecs.h"
#include "data/columns/damage.h"
#include "data/stretches.h"
#include "support/support.h"

namespace trainyard::data::parquet {
namespace {
namespace fs = std::filesystem;
using Texts = std::vector<std::string>;
using Parts = std::vector<std::shared_ptr<const TextRows>>;

fs::path written(const std::string& name) {
  return test::in_repository("tests/unit/data/parquet") / (name + ".parquet");
}

/// The formula of make.py.
std::string text_of(size_t row) {
  switch (row % 5) {
    case 0: return "";
    case 1: return fmt::format("row {}", row);
    case 2: return fmt::format("Zeile {}: größer, 日本, 😀", row);
    case 3: return "the same in many rows";
    default: return std::string(row, 'x');
  }
}

Parts parts_of(const fs::path& file, const std::string& column) {
  const auto opened = open_parquet(file, column);
  Parts parts;
  while (const auto part = opened->next()) parts.push_back(part);
  return parts;
}

/// Texts of parts, whose rows must count from `first` on.
Texts texts_of(const TextRows& part, int64_t first) {
  Texts texts;
  part.for_each([&](std::string_view text, int64_t row) {
    texts.emplace_back(row == first + std::ssize(texts) ? text : "no such row");
  });
  return texts;
}

Texts texts_of(const fs::path& file, const std::string& column) {
  Texts texts;
  for (const auto& part : parts_of(file, column))
    for (const std::string& text : texts_of(*part, 1 + std::ssize(texts))) texts.push_back(text);
  return texts;
}

std::string refusal_of(const fs::path& file, const std::string& column) {
  try {
    texts_of(file, column);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("parquet: a column has the texts that were written in every codec, encoding and version of pages", "[data]") {
  Texts expected;
  for (size_t row = 1; row <= 32; ++row) expected.push_back(text_of(row));
  const std::string codec = GENERATE("none", "snappy", "gzip", "brotli", "zstd", "lz4");
  const std::string version = GENERATE("v1", "v2");
  for (const char* const column : {"plain", "dictionary", "lengths", "prefixes"}) {
    CAPTURE(codec, version, column);
    const fs::path file = written(codec + "_" + version);
    CHECK(open_parquet(file, column)->rows() == 32);
    CHECK(texts_of(file, column) == expected);
  }
}

TEST_CASE("parquet: pages that have checksums are read as others", "[data]") {
  for (const char* const file : {"checksums_v1", "checksums_v2"}) {
    CHECK(texts_of(written(file), "dictionary") == Texts(12, text_of(3)));
    CHECK(texts_of(written(file), "plain")[11] == text_of(12));
  }
}

TEST_CASE("parquet: a row without a text is named", "[data]") {
  for (const char* const name : {"nulls_v1", "nulls_v2"})
    for (const char* const column : {"plain", "dictionary"}) {
      const fs::path file = written(name);
      CHECK(refusal_of(file, column) ==
            fmt::format("{}: row 17 of the column '{}' has no text (null)", file.string(), column));
      const Parts parts = parts_of(file, column);
      REQUIRE(parts.size() == 3);
      CHECK(texts_of(*parts[0], 1)[9] == text_of(10));
      CHECK(texts_of(*parts[2], 21)[9] == text_of(30));
    }
}

TEST_CASE("parquet: text, JSON and bytes are text, other columns are refused by what they hold", "[data]") {
  const fs::path file = written("kinds");
  CHECK(texts_of(file, "text") == Texts{"text"});
  CHECK(texts_of(file, "bytes") == Texts{"bytes"});
  CHECK(texts_of(file, "large") == Texts{"large"});
  CHECK(texts_of(file, "json") == Texts{"{}"});
  const std::vector<std::pair<std::string, std::string>> others{
      {"flag", "true or false"}, {"int8", "whole numbers"}, {"int32", "whole numbers of 32 bits"},
      {"int64", "whole numbers of 64 bits"}, {"float", "numbers of 32 bits"}, {"double", "numbers of 64 bits"},
      {"date", "dates"}, {"time", "times of day"}, {"timestamp", "points in time"}, {"decimal", "decimal numbers"},
      {"fixed", "bytes of a fixed length"}, {"null", "nothing but nulls"}, {"list", "lists"}, {"struct", "structs"},
      {"map", "maps"}};
  for (const auto& [column, content] : others)
    CHECK(refusal_of(file, column) == fmt::format("{}: the column '{}' holds {}, no text; its columns of text: bytes, "
                                                  "large, json, text", file.string(), column, content));
}

TEST_CASE("parquet: a column that a file lacks is named with those that it has", "[data]") {
  const fs::path file = written("kinds");
  const std::string has = "its columns of text: bytes, large, json, text";
  CHECK(refusal_of(file, "Text") ==
        fmt::format("{}: has no column 'Text' (did you mean 'text'?); {}", file.string(), has));
  CHECK(refusal_of(file, "content") == fmt::format("{}: has no column 'content'; {}", file.string(), has));
  CHECK(refusal_of(file, "name") == fmt::format("{}: has no column 'name'; {}", file.string(), has));  // is in a struct
}

TEST_CASE("parquet: a part is of small pages together, about a MiB of text, and of one row group", "[data]") {
  CHECK(parts_of(written("none_v1"), "plain").size() == 2);
  for (const char* const column : {"plain", "dictionary"}) {
    CAPTURE(column);
    const Parts parts = parts_of(written("parts"), column);
    int64_t row = 1;
    for (const auto& part : parts) {
      size_t bytes = 0;
      for (const std::string& text : texts_of(*part, row)) bytes += text.size(), ++row;
      CHECK(bytes < 2 * kPartBytes);
      CHECK((bytes >= kPartBytes || part == parts.back()));
    }
    CHECK(row == 301);
  }
  size_t bytes = 0;
  for (const auto& part : parts_of(written("parts"), "plain")) bytes += part->bytes();
  CHECK(bytes == 4593);  // what pyarrow says that the column takes
}

TEST_CASE("parquet: threads read parts of one dictionary at once, when nothing else holds the file", "[data]") {
  const Parts parts = parts_of(written("parts"), "dictionary");
  std::vector<int64_t> right(4);
  {
    std::vector<std::jthread> threads;
    for (int64_t& count : right)
      threads.emplace_back([&parts, &count] {
        for (const auto& part : parts)
          part->for_each([&](std::string_view text, int64_t row) { count += text[4] == "123"[row % 3]; });
      });
  }
  CHECK(right == std::vector<int64_t>(4, 300));
}

TEST_CASE("parquet: a file without rows ends at once", "[data]") {
  for (const char* const name : {"no_rows", "no_groups"}) {
    const auto column = open_parquet(written(name), "text");
    CHECK(column->rows() == 0);
    CHECK(column->next() == nullptr);
    CHECK(column->next() == nullptr);
  }
}

namespace {

const std::string kContent = std::string(1000, 'a') + "and then something else";

std::string block_of_lz4(const std::string& content) {
  const int size = static_cast<int>(content.size()), bound = LZ4_compressBound(size);
  std::string packed(static_cast<size_t>(bound), '\0');
  packed.resize(static_cast<size_t>(LZ4_compress_default(content.data(), packed.data(), size, bound)));
  return packed;
}

std::string frame_of_lz4(const std::string& content) {
  std::string packed(LZ4F_compressFrameBound(content.size(), nullptr), '\0');
  packed.resize(LZ4F_compressFrame(packed.data(), packed.size(), content.data(), content.size(), nullptr));
  return packed;
}

std::string big_endian(size_t value) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(value >> shift);
  return bytes;
}

std::string behind_size(const std::string& block) {
  return big_endian(block.size()) + block;
}

/// What deflate makes of it: 15 bits of window, and 16 more for gzip, else zlib.
std::string deflated(const std::string& content, int window_bits) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string copy = content, packed(deflateBound(&stream, content.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(copy.data());
  stream.avail_in = static_cast<uInt>(copy.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

}  // namespace

TEST_CASE("codecs: what writers called LZ4 and gzip gives its content, and nothing else where it is cut", "[data]") {
  const std::string a = kContent.substr(0, 600), b = kContent.substr(600);
  const std::vector<std::pair<Codec, std::string>> blocks{
      {Codec::Lz4, block_of_lz4(kContent)},
      {Codec::OldLz4, block_of_lz4(kContent)},
      {Codec::OldLz4, frame_of_lz4(kContent)},
      {Codec::OldLz4, big_endian(kContent.size()) + behind_size(block_of_lz4(kContent))},
      {Codec::OldLz4, big_endian(kContent.size()) + behind_size(block_of_lz4(a)) + behind_size(block_of_lz4(b))},
      {Codec::OldLz4, big_endian(a.size()) + behind_size(block_of_lz4(a)) +  //
                          big_endian(b.size()) + behind_size(block_of_lz4(b))},
      {Codec::Gzip, deflated(kContent, 15 + 16)},
      {Codec::Gzip, deflated(kContent, 15)},
      {Codec::Gzip, deflated(a, 15 + 16) + deflated(b, 15 + 16)}};
  for (const auto& [codec, block] : blocks) {
    CAPTURE(static_cast<int>(codec), block);
    CHECK(unpack(codec, block, kContent.size()).bytes == kContent);
    CHECK_THROWS_AS(unpack(codec, block, kContent.size() - 1), Damage);
    CHECK_THROWS_AS(unpack(codec, block, kContent.size() + 1), Damage);
    CHECK_THROWS_AS(unpack(codec, block.substr(0, block.size() - 1), kContent.size()), Damage);
  }
}

TEST_CASE("codecs: a size is refused before memory is taken where no block of that length can have it", "[data]") {
  CHECK_THROWS_WITH(unpack(Codec::Snappy, "ten bytes.", 1000), "10 bytes of Snappy cannot give 1000");
  CHECK_THROWS_WITH(unpack(Codec::Zstd, "ten bytes.", size_t{1} << 30), "10 bytes of zstd cannot give 1073741824");
  CHECK_THROWS_AS(unpack(Codec::Brotli, "ten bytes.", (size_t{1} << 30) + 1), NotOffered);
  CHECK_THROWS_WITH(unpack(Codec::None, "ten bytes.", 11), "10 bytes that are not packed are to give 11");
  CHECK(unpack(Codec::Gzip, "", 0).bytes.empty());
}

}  // namespace trainyard::data::parquet
