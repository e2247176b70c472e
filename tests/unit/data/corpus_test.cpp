#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <fcntl.h>

#include <filesystem>
#include <future>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "data/corpus.h"
#include "data/documents.h"
#include "support/support.h"

namespace trainyard::data {
namespace {
namespace fs = std::filesystem;

std::string text_of(const TokenArray& tokens) {  // byte tokenizer: ids are bytes, 256 the end of a document
  std::string text;
  for (int64_t i = 0; i < tokens.size(); ++i) text += tokens[i] == 256 ? '|' : static_cast<char>(tokens[i]);
  return text;
}

TokenArray open_bytes(const fs::path& path, const std::string& field = "text") {
  return open_corpus({.path = path, .field = field}, *tokenizer::load_tokenizer("bytes"));
}

std::vector<fs::path> files_of(const fs::path& folder) {
  if (!fs::exists(folder)) return {};
  return {fs::directory_iterator(folder), {}};
}

void write(const fs::path& path, std::string_view content) {
  fs::create_directories(path.parent_path());
  write_file_atomically(path, content);
}

}  // namespace

TEST_CASE("corpus: a text is one document, a JSON line is one, a folder is its files in order", "[data]") {
  const test::TemporaryFolder folder;
  write(folder / "corpus/b.txt", "second\n");
  write(folder / "corpus/a.jsonl", "{\"text\": \"one\"}\n\n{\"text\": \"t\\u0177o\", \"id\": 2}\r\n");
  write(folder / "corpus/deep/c.txt", "third");
  write(folder / "corpus/notes.md", "not this");
  write(folder / "corpus/.hidden/d.txt", "nor this");
  CHECK(text_of(open_bytes(folder / "corpus/b.txt")) == "second\n|");
  CHECK(text_of(open_bytes(folder / "corpus")) == "one|t\xC5\xB7o|second\n|third|");
}

TEST_CASE("corpus: the end of text can be left out, and makes another cache", "[data]") {
  const test::TemporaryFolder folder;
  write(folder / "a.txt", "abc");
  const auto bytes = tokenizer::load_tokenizer("bytes");
  const TokenArray with = open_corpus({.path = folder / "a.txt"}, *bytes);
  const TokenArray without = open_corpus({.path = folder / "a.txt", .append_eos = false}, *bytes);
  CHECK(text_of(with) == "abc|");
  CHECK(text_of(without) == "abc");
  CHECK(with.fingerprint() != without.fingerprint());
  CHECK(tokenise_text("abc", *bytes, true, "embedded").size() == 4);
}

TEST_CASE("corpus: the cache is used again, follows the content, and is made again where it is damaged", "[data]") {
  const test::TemporaryFolder folder;
  write(folder / "a.txt", "first");
  open_bytes(folder / "a.txt");
  const auto cached = files_of(folder / ".trainyard");
  REQUIRE(cached.size() == 1);  // no partial file is left
  const auto written = fs::last_write_time(cached[0]);
  open_bytes(folder / "a.txt");
  CHECK(fs::last_write_time(cached[0]) == written);
  write(folder / "a.txt", "other");
  CHECK(text_of(open_bytes(folder / "a.txt")) == "other|");
  write(folder / "a.txt", "first");
  fs::resize_file(cached[0], 70);
  CHECK(text_of(open_bytes(folder / "a.txt")) == "first|");
}

TEST_CASE("corpus: a given cache folder is used", "[data]") {
  const test::TemporaryFolder folder;
  write(folder / "a.txt", "abc");
  open_corpus({.path = folder / "a.txt", .cache_dir = folder / "cache"}, *tokenizer::load_tokenizer("bytes"));
  CHECK(files_of(folder / "cache").size() == 1);
  CHECK(files_of(folder / ".trainyard").empty());
}

TEST_CASE("corpus: what the user has to mend is named with file and place", "[data]") {
  const test::TemporaryFolder folder;
  const auto fails = [&](const std::string& name, const std::string& content, const std::string& message) {
    write(folder / name, content);
    CHECK_THROWS_AS(open_bytes(folder / name), InputError);
    CHECK_THROWS_WITH(open_bytes(folder / name), Catch::Contains(name + message));
  };
  fails("empty.txt", "", ": the corpus is empty");
  fails("empty.jsonl", "\n\n", ": the corpus is empty");
  fails("latin1.txt", "caf\xE9 au lait", ": no UTF-8 at byte 3 (0xe9)");
  fails("latin1.jsonl", "{\"text\": \"a\"}\n{\"text\": \"caf\xE9\"}\n", ":2: no UTF-8 at byte 13");
  fails("broken.jsonl", "{\"text\": \"a\"}\n{\"text\": ", ":2: ");
  fails("typo.jsonl", "{\"texts\": \"a\", \"id\": 1}",
        ":1: no field 'text', did you mean 'texts'?; the line has id, texts");
  fails("number.jsonl", "{\"text\": 5}", ":1: the field 'text' must be a string, is number");
  fails("list.jsonl", "[1]", ":1: must be a JSON object");
  CHECK_THROWS_WITH(open_bytes(folder / "none.txt"), Catch::Contains("none.txt: no such file"));
  write(folder / "corpus.bin", "x");
  CHECK_THROWS_WITH(open_bytes(folder / "corpus.bin"), Catch::Contains("a corpus is a .txt file"));
  fs::create_directory(folder / "nothing");
  CHECK_THROWS_WITH(open_bytes(folder / "nothing"), Catch::Contains("no .txt and no .jsonl"));
  CHECK(files_of(folder / ".trainyard").empty());  // nothing half-made is left behind
}

TEST_CASE("corpus: threads and processes that ask at once share one cache", "[data]") {
  const test::TemporaryFolder folder;
  write(folder / "a.txt", std::string(300'000, 'x'));
  std::vector<pid_t> children;
  for (int i = 0; i < 3; ++i) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(open_bytes(folder / "a.txt").size() == 300'001 ? 0 : 1);
    children.push_back(child);
  }
  std::vector<int64_t> sizes(4);
  {
    std::vector<std::jthread> threads;
    for (auto& size : sizes) threads.emplace_back([&] { size = open_bytes(folder / "a.txt").size(); });
  }
  for (const pid_t child : children) {
    int status = 1;
    CHECK(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  CHECK(sizes == std::vector<int64_t>(4, 300'001));
  CHECK(files_of(folder / ".trainyard").size() == 1);
}

TEST_CASE("corpus: who holds the lock for too long is named, and who died with it does not matter", "[data]") {
  const test::TemporaryFolder folder;
  write(folder / "a.txt", "abc");
  const auto bytes = tokenizer::load_tokenizer("bytes");
  const CorpusOptions options{.path = folder / "a.txt", .timeout = std::chrono::milliseconds(60)};
  open_corpus(options, *bytes);
  const fs::path cached = files_of(folder / ".trainyard").at(0), partial = cached.string() + ".partial";
  fs::remove(cached);
  write(partial, "what a dead process left behind");
  {
    const UniqueFd holder(::open(partial.c_str(), O_RDWR));
    REQUIRE(::flock(holder.get(), LOCK_EX) == 0);
    CHECK_THROWS_AS(open_corpus(options, *bytes), PeerError);
    CHECK_THROWS_WITH(open_corpus(options, *bytes), Catch::Contains(partial.string()));
  }
  CHECK(text_of(open_corpus(options, *bytes)) == "abc|");
  CHECK_FALSE(fs::exists(partial));
}

TEST_CASE("corpus: who goes on writing is waited for, however long it takes", "[data]") {
  const test::TemporaryFolder folder;
  write(folder / "a.txt", "abc");
  const auto bytes = tokenizer::load_tokenizer("bytes");
  const CorpusOptions options{.path = folder / "a.txt", .timeout = std::chrono::seconds(1)};
  open_corpus(options, *bytes);
  const fs::path cached = files_of(folder / ".trainyard").at(0), partial = cached.string() + ".partial";
  fs::remove(cached);
  const UniqueFd holder(::open(partial.c_str(), O_RDWR | O_CREAT, 0600));
  REQUIRE(::flock(holder.get(), LOCK_EX) == 0);
  auto waiting = std::async(std::launch::async, [&] { return text_of(open_corpus(options, *bytes)); });
  const auto end = std::chrono::steady_clock::now() + 2 * options.timeout;
  while (std::chrono::steady_clock::now() < end &&
         waiting.wait_for(std::chrono::milliseconds(5)) == std::future_status::timeout)
    REQUIRE(::write(holder.get(), "x", 1) == 1);
  REQUIRE(::flock(holder.get(), LOCK_UN) == 0);
  CHECK(waiting.get() == "abc|");
}

TEST_CASE("corpus: ids of large vocabularies keep their four bytes", "[data]") {
  if (test::test_data().empty()) return test::skip("no reference data");
  const test::TemporaryFolder folder;
  const auto qwen = tokenizer::load_tokenizer(test::test_data() / "qwen2_tokenizer");
  const std::string text =
      read_file(test::test_data() / "wikitext-2/wiki.test.txt", size_t{10} << 20).substr(0, 200'000);
  write(folder / "a.txt", text);
  const TokenArray tokens = open_corpus({.path = folder / "a.txt"}, *qwen);
  auto expected = qwen->encode(text);
  expected.push_back(151643);
  std::vector<int32_t> ids(static_cast<size_t>(tokens.size()));
  tokens.copy(0, ids);
  CHECK((ids == expected));
}

TEST_CASE("part_length: parts make the text again and give the tokens of the whole", "[data]") {
  if (test::test_data().empty()) return test::skip("no reference data");
  const std::string name = GENERATE("qwen2", "llama3", "torchtitan");
  const auto tokenizer = tokenizer::load_tokenizer(test::test_data() / (name + "_tokenizer"));
  const std::string text = read_file(test::test_data() / "wikitext-2/wiki.test.txt").substr(0, 100'000);
  std::vector<int32_t> ids;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t length = part_length(rest, 3'000);
    const auto part = tokenizer->encode(rest.substr(0, length));
    ids.insert(ids.end(), part.begin(), part.end());
    rest.remove_prefix(length);
  }
  CHECK((ids == tokenizer->encode(text)));  // in brackets: a failure would print them all
}

TEST_CASE("part_length: a text without words is cut between characters", "[data]") {
  std::string text;
  while (text.size() < 100) text += "\xE2\x82\xAC";
  for (const size_t limit : {10, 11, 12}) CHECK(part_length(text, limit) % 3 == 0);
}

}  // namespace trainyard::data
