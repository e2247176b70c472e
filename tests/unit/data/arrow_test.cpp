// Tables of Arrow, and the folders of Hugging Face datasets that hold them. The files are arrow/make.py's.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "data/columns/open_column.h"
#include "data/corpus.h"
#include "data/corpus_files.h"
#include "support/captured_log.h"
#include "support/support.h"

namespace trainyard::data {
namespace {
namespace fs = std::filesystem;

const fs::path kFiles = test::in_repository("tests/unit/data/arrow");

std::string text_of(int row) {
  return row % 17 == 3
             ? ""
             : fmt::format("row {} Grüße 日本 🙂 {}", row, std::string(static_cast<size_t>(row * 7 % 23), 'x'));
}

std::vector<std::string> expected_texts(int rows = 60) {
  std::vector<std::string> texts;
  for (int row = 0; row < rows; ++row) texts.push_back(text_of(row));
  return texts;
}

std::vector<std::string> texts_of(const fs::path& file, const std::string& column = "text") {
  std::vector<std::string> texts;
  const auto opened = open_text_column(file, column);
  while (const auto rows = opened->next())
    rows->for_each([&](std::string_view text, int64_t row) {
      if (row != static_cast<int64_t>(texts.size()) + 1) FAIL("row " << row << " comes after " << texts.size());
      texts.emplace_back(text);
    });
  CHECK(opened->rows() == static_cast<int64_t>(texts.size()));
  return texts;
}

std::vector<int32_t> ids_of(const fs::path& path, const fs::path& cache) {
  const TokenArray tokens = open_corpus({.path = path, .cache_dir = cache}, *tokenizer::load_tokenizer("bytes"));
  std::vector<int32_t> ids(static_cast<size_t>(tokens.size()));
  tokens.copy(0, ids);
  return ids;
}

/// As JSON lines of the same texts.
std::vector<int32_t> expected_ids(const test::TemporaryFolder& folder, int rows = 60) {
  std::string lines;
  for (const std::string& text : expected_texts(rows)) lines += fmt::format("{{\"text\": \"{}\"}}\n", text);
  write_file_atomically(folder / "expected.jsonl", lines);
  return ids_of(folder / "expected.jsonl", folder.path());
}

/// Without waiting for the disk.
void store(const fs::path& file, const std::string& content) {
  std::ofstream(file, std::ios::binary) << content;
}

fs::path copy_of(const char* name, const test::TemporaryFolder& folder) {
  fs::copy(kFiles / name, folder / name, fs::copy_options::recursive);
  return folder / name;
}

}  // namespace

TEST_CASE("arrow: streams and files, packed or not, give their texts whatever stands before the column", "[data]") {
  for (const char* const name : {"stream.arrow", "file.arrow", "lz4.arrow", "zstd.arrow", "legacy.arrow", "large.arrow",
                                 "views.arrow", "sliced.arrow"}) {
    CAPTURE(name);
    CHECK(texts_of(kFiles / name) == expected_texts());
  }
  CHECK(texts_of(kFiles / "stream.arrow", "after")[5] == text_of(5) + "!");
  CHECK(texts_of(kFiles / "lz4.arrow", "views")[59] == "a view of more than twelve bytes 59");
  CHECK(texts_of(kFiles / "empty.arrow").empty());
}

TEST_CASE("arrow: a column that is not there or holds no text is refused with those that do", "[data]") {
  const fs::path file = kFiles / "stream.arrow";
  CHECK_THROWS_WITH(
      open_text_column(file, "test"),
      file.string() + ": no column 'test', did you mean 'text'?; the file has text in views, text, after");
  CHECK_THROWS_WITH(open_text_column(file, "list"),
                    Catch::Contains("the column 'list' is of the type List; the file has text"));
  CHECK_THROWS_WITH(open_text_column(file, "dictionary"), Catch::Contains("is of the type a dictionary of Utf8"));
  CHECK_THROWS_WITH(texts_of(kFiles / "null.arrow"),
                    Catch::Contains("null.arrow: row 3 of the column 'text' has no text (null)"));
}

TEST_CASE("arrow: a file that is cut off anywhere, or has another byte anywhere, is read or named", "[data]") {
  const test::TemporaryFolder folder;
  for (const char* const name : {"zstd.arrow", "lz4.arrow", "views.arrow", "legacy.arrow"}) {
    const std::string whole = read_file(kFiles / name);
    const fs::path file = folder / name;
    const auto read_or_named = [&](const std::string& content) {
      store(file, content);
      try {
        static_cast<void>(texts_of(file));
      } catch (const InputError& error) {
        CHECK_THAT(error.what(), Catch::StartsWith(file.string()));
      }
    };
    for (size_t length = 0; length < whole.size(); length += 7) read_or_named(whole.substr(0, length));
    for (size_t at = 0; at < whole.size(); at += 3) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ (1 << (at % 8)));
      read_or_named(changed);
    }
  }
  store(folder / "cut.arrow", read_file(kFiles / "stream.arrow").substr(0, 20000));
  CHECK_THROWS_WITH(texts_of(folder / "cut.arrow"), Catch::Contains("cut.arrow: is cut off: 7688 bytes are to follow"));
  store(folder / "text.arrow", "this is no table of Arrow's");
  CHECK_THROWS_WITH(texts_of(folder / "text.arrow"), Catch::Contains("text.arrow: is no Arrow file, or is damaged"));
}

TEST_CASE("corpus: a table has the ids of the lines, a row that is no UTF-8 is named", "[data]") {
  const test::TemporaryFolder folder;
  const auto expected = expected_ids(folder);
  CHECK(ids_of(kFiles / "stream.arrow", folder.path()) == expected);
  CHECK(ids_of(kFiles / "zstd.arrow", folder.path()) == expected);
  CHECK(has_several_documents({.path = kFiles / "zstd.arrow"}));
  CHECK_FALSE(has_several_documents({.path = kFiles / "empty.arrow"}));

  std::string changed = read_file(kFiles / "sliced.arrow");
  changed[changed.find("row 42") + 7] = '\xff';
  write_file_atomically(folder / "changed.arrow", changed);
  CHECK_THROWS_WITH(ids_of(folder / "changed.arrow", folder.path()), Catch::Contains("changed.arrow: row 43"));
}

TEST_CASE("corpus: a folder of save_to_disk() is read in the order of its rows, of several splits one has to be named",
          "[data]") {
  const test::TemporaryFolder folder;
  const fs::path saved = copy_of("saved", folder);
  CHECK(ids_of(saved / "train", folder.path()) == expected_ids(folder));
  CHECK(ids_of(saved / "test", folder.path()) == expected_ids(folder, 7));
  CHECK_THROWS_WITH(corpus_files(saved), saved.string() + ": holds the splits train, test; give one of them, such as " +
                                             (saved / "train").string());
  write_file_atomically(saved / "train" / "cache-1.arrow", "what map() left is no part of the data set");
  CHECK(corpus_files(saved / "train").size() == 2);

  write_file_atomically(saved / "dataset_dict.json", "{\"splits\": [\"test\"]}");
  CHECK(ids_of(saved, folder.path()) == expected_ids(folder, 7));
  write_file_atomically(saved / "dataset_dict.json", "{}");
  CHECK_THROWS_WITH(corpus_files(saved), Catch::Contains("dataset_dict.json: has no list 'splits'"));

  const fs::path state = saved / "train" / "state.json";
  fs::remove(saved / "train" / "data-00001-of-00002.arrow");
  CHECK_THROWS_WITH(
      corpus_files(saved / "train"),
      state.string() + ": names data-00001-of-00002.arrow, which is not there; save or copy the data set again");
  write_file_atomically(state, R"({"_data_files": [], "_indices_data_files": [{"filename": "indices.arrow"}]})");
  CHECK_THROWS_WITH(corpus_files(saved / "train"), Catch::Contains("has an order of its rows beside them"));
  write_file_atomically(state, R"({"_data_files": [)");
  CHECK_THROWS_WITH(corpus_files(saved / "train"), Catch::Contains("state.json: is no JSON object"));
}

TEST_CASE("corpus: tables of several splits are not read as one, a pattern names those of one", "[data]") {
  const test::TemporaryFolder folder;
  const fs::path cache = folder / "wikitext" / "default";  // as load_dataset() names them
  fs::create_directories(cache);
  for (const char* const name : {"wikitext-train-00000-of-00002.arrow", "wikitext-train-00001-of-00002.arrow",
                                 "wikitext-test.arrow", "cache-8ab1.arrow"})
    fs::copy(kFiles / "zstd.arrow", cache / name);
  CHECK_THROWS_WITH(
      corpus_files(folder / "wikitext"),
      Catch::Contains(
          "this folder holds the splits test, train; give the folder of one of them, or a pattern such as"));
  const auto train = corpus_files(cache / "*train*");
  REQUIRE(train.size() == 2);
  CHECK(train[1].filename() == "wikitext-train-00001-of-00002.arrow");
  CHECK(corpus_files(folder / "*" / "def?ult" / "*[n]-00001*").size() == 1);
  CHECK(is_there(cache / "*train*"));
  CHECK_FALSE(is_there(cache / "*valid*"));
  CHECK_THROWS_WITH(corpus_files(cache / "*valid*"), Catch::Contains("no file matches this pattern"));
  CHECK_THROWS_WITH(corpus_files(folder / "**" / "*.arrow"), Catch::Contains("'**' is no pattern here"));
  CHECK(ids_of(cache / "*train*", "").size() == 2 * expected_ids(folder).size());
  CHECK(fs::exists(cache / ".trainyard"));

  fs::remove(cache / "wikitext-test.arrow");
  test::CapturedLog log;
  CHECK(corpus_files(folder / "wikitext").size() == 2);
  CHECK_THAT(log.text(),
             Catch::Contains("passed over 1 .arrow and 1 .trainyard") || Catch::Contains("passed over 1 .arrow"));
}

}  // namespace trainyard::data
