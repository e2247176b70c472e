// Corpora that gzip and zstd have packed.
#include <catch2/catch.hpp>

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <filesystem>
#include <functional>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "data/corpus.h"
#include "data/pairs.h"
#include "data/unpacking.h"
#include "support/captured_log.h"
#include "support/support.h"

namespace trainyard::data {
namespace {
namespace fs = std::filesystem;

std::string with_gzip(const std::string& text) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string packed(deflateBound(&stream, text.size()) + 64, '\0');
  std::string copy = text;
  stream.next_in = reinterpret_cast<Bytef*>(copy.data());
  stream.avail_in = static_cast<uInt>(copy.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string with_zstd(const std::string& text) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);  // as the program zstd does
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress2(context, packed.data(), packed.size(), text.data(), text.size()));
  ZSTD_freeCCtx(context);
  return packed;
}

struct Format {
  std::string ending;
  std::function<std::string(const std::string&)> pack;
};
const std::vector<Format> kFormats{{".gz", with_gzip}, {".zst", with_zstd}};

std::string unpacked(const fs::path& file, size_t piece) {
  Unpacking unpacking(file);
  std::string text, buffer(piece, '\0');
  while (const size_t read = unpacking.read(buffer)) text.append(buffer, 0, read);
  return text;
}

/// Lines of many lengths, one of them longer than a part of a corpus.
std::string many_lines() {
  std::string text;
  for (int line = 0; line < 4000; ++line)
    text += fmt::format("{{\"text\": \"{} {}\"}}\n", line, std::string(static_cast<size_t>(line * 37 % 1000), 'x'));
  text += fmt::format("{{\"text\": \"{}\"}}\n\n", std::string(3 * size_t{1} << 20, 'y'));
  return text + "{\"text\": \"the last line has no end\"}";
}

TokenArray opened(const fs::path& path) {
  return open_corpus({.path = path}, *tokenizer::load_tokenizer("bytes"));
}

std::vector<int32_t> ids_of(const fs::path& path) {
  const TokenArray tokens = opened(path);
  std::vector<int32_t> ids(static_cast<size_t>(tokens.size()));
  tokens.copy(0, ids);
  return ids;
}

}  // namespace

TEST_CASE("unpacking: the content comes back whatever is asked for at once, of several members or frames too", "[data]") {
  const test::TemporaryFolder folder;
  const std::string text = many_lines();
  for (const Format& format : kFormats) {
    CAPTURE(format.ending);
    const fs::path file = folder / ("corpus.JSONL" + format.ending);
    const size_t half = text.size() / 2;
    for (const std::string& packed : {format.pack(text), format.pack(text.substr(0, half)) + format.pack("") +
                                                             format.pack(text.substr(half))}) {
      write_file_atomically(file, packed);
      CHECK(unpacked(file, size_t{1} << 20) == text);
      CHECK(unpacked(file, text.size()) == text);
      CHECK(unpacked(file, 777) == text);
    }
    write_file_atomically(file, format.pack(""));
    CHECK(unpacked(file, 10).empty());
  }
  write_file_atomically(folder / "tape.gz", with_gzip("a text") + std::string(512, '\0'));
  CHECK(unpacked(folder / "tape.gz", 100) == "a text");
}

TEST_CASE("unpacking: a file that is cut off, damaged, or of another kind is named", "[data]") {
  const test::TemporaryFolder folder;
  const std::string text = many_lines();
  for (const Format& format : kFormats) {
    CAPTURE(format.ending);
    const fs::path file = folder / ("corpus.jsonl" + format.ending);
    const std::string packed = format.pack(text);
    for (const size_t length : {size_t{0}, size_t{3}, packed.size() / 2, packed.size() - 1}) {
      CAPTURE(length);
      write_file_atomically(file, packed.substr(0, length));
      CHECK_THROWS_WITH(unpacked(file, 4096), Catch::Contains(file.string() + ": is cut off"));
    }
    std::string damaged = packed;
    for (size_t i = packed.size() / 2; i < packed.size() / 2 + 8; ++i) damaged[i] = static_cast<char>(~damaged[i]);
    for (const std::string& content : {text, damaged, packed + "and more"}) {
      write_file_atomically(file, content);
      CHECK_THROWS_AS(unpacked(file, 4096), InputError);
      CHECK_THROWS_WITH(unpacked(file, 4096), Catch::Contains(file.string() + ": is no whole file of "));
    }
  }
}

TEST_CASE("corpus: packed lines have the ids of the lines, wherever a line ends", "[data]") {
  const test::TemporaryFolder folder;
  const std::string text = many_lines();
  write_file_atomically(folder / "plain.jsonl", text);
  const auto expected = ids_of(folder / "plain.jsonl");
  for (const Format& format : kFormats)
    for (const std::string name : {"packed.jsonl", "packed.JSON"}) {
      CAPTURE(format.ending, name);
      const fs::path file = folder / (name + format.ending);
      write_file_atomically(file, format.pack(text));
      CHECK(ids_of(file) == expected);
      CHECK(has_several_documents({.path = file}));
      write_file_atomically(file, format.pack("\n{\"text\": \"one\"}\n"));
      CHECK_FALSE(has_several_documents({.path = file}));
      write_file_atomically(file, format.pack("{\"text\": \"one\"}\n{\"text\": 2}\n"));
      CHECK_THROWS_WITH(opened(file), Catch::Contains(file.string() + ":2: the field 'text' must be a string"));
    }
}

TEST_CASE("corpus: of a folder packed files are read too, a packed .txt is refused by name", "[data]") {
  const test::TemporaryFolder folder;
  for (const char* const name : {"a.jsonl", "b.jsonl"})
    write_file_atomically(folder / name, fmt::format("{{\"text\": \"{}\"}}\n", name));
  write_file_atomically(folder / "b.jsonl.gz", with_gzip("{\"text\": \"c\"}\n"));
  write_file_atomically(folder / "notes.txt.gz", with_gzip("a text"));
  write_file_atomically(folder / "x.json.zst", with_zstd("{\"text\": \"d\"}\n"));
  test::CapturedLog log;
  const auto files = corpus_files(folder.path());
  REQUIRE(files.size() == 3);
  CHECK(files[2].filename() == "b.jsonl.gz");
  CHECK_THAT(log.text(), Catch::Contains("passed over 1 .json.zst and 1 .txt.gz"));
  CHECK_THROWS_WITH(corpus_files(folder / "notes.txt.gz"), Catch::Contains("a .txt file is one document and is read unpacked"));
  CHECK(corpus_files(folder / "x.json.zst").size() == 1);
}

TEST_CASE("pairs: packed lines have them as lines do", "[data]") {
  const test::TemporaryFolder folder;
  const std::string lines = "{\"question\": \"a\", \"answer\": \"b\"}\n\n{\"question\": \"c\", \"answer\": \"d\"}\n";
  for (const Format& format : kFormats) {
    const fs::path file = folder / ("pairs.jsonl" + format.ending);
    write_file_atomically(file, format.pack(lines));
    const auto pairs = read_pairs({.path = file, .source_field = "question", .target_field = "answer"});
    REQUIRE(pairs.size() == 2);
    CHECK(pairs[1].source == "c");
    CHECK(pairs[1].target == "d");
    write_file_atomically(file, format.pack(lines + "{\"question\": 1}\n"));
    CHECK_THROWS_WITH(read_pairs({.path = file, .source_field = "question", .target_field = "answer"}),
                      Catch::Contains(file.string() + ":4: question is no string"));
  }
}

}  // namespace trainyard::data
