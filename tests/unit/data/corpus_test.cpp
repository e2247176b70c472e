#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/error.h"
#include "data/documents.h"
#include "support/captured_log.h"
#include "support/support.h"
#include "unit/data/corpora.h"

namespace trainyard::data {

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

TEST_CASE("corpus: endings count in any case, and a line counts by ending what is passed over", "[data]") {
  const test::TemporaryFolder folder;
  const fs::path corpus = folder / "corpus";
  for (const char* name : {"1.TXT", "2.json", "4.md", "5.Md", "README", ".hidden"}) write(corpus / name, "one");
  write(corpus / "3.JsonL", "{\"text\": \"two\"}\n");
  fs::create_symlink("nowhere", corpus / "more");
  const auto log_of = [&](Notes notes) {
    const test::CapturedLog log;
    CHECK(corpus_files(corpus, notes) == std::vector<fs::path>{corpus / "1.TXT", corpus / "3.JsonL"});
    return log.text();
  };
  CHECK_THAT(log_of(Notes::Logged),
             Catch::EndsWith("corpus: passed over 1 .json, 2 .md, 1 without an ending and 1 link to nothing; of a folder "
                             "the .txt and .jsonl files are read\n"));
  CHECK(log_of(Notes::Unsaid).empty());
  CHECK(text_of(open_bytes(corpus)) == "one|two|");
  CHECK(text_of(open_bytes(corpus / "3.JsonL")) == "two|");

  fs::remove(corpus / "1.TXT"), fs::remove(corpus / "3.JsonL");
  write(corpus / "2.JSON", "{\"text\": \"a\"}\n");
  write(corpus / "2.json", "{\"text\": \"b\"}\n");
  CHECK(text_of(open_bytes(corpus)) == "a|b|");
  fs::remove(corpus / "2.JSON"), fs::remove(corpus / "2.json");
  CHECK_THROWS_WITH(open_bytes(corpus),
                    Catch::EndsWith("no .txt, .jsonl, .parquet, .arrow or .json file below this folder, which "
                                    "has 2 .md, 1 without an ending and 1 link to nothing"));
}

TEST_CASE("corpus: links are followed, and a file with several names is read once", "[data]") {
  const test::TemporaryFolder folder;
  const fs::path corpus = folder / "corpus";
  write(corpus / "m.txt", "m");
  write(corpus / "z/1.txt", "1");
  const std::string without_links = open_bytes(corpus).fingerprint();
  fs::create_directory_symlink("z", corpus / "a");  // what is linked within the corpus changes nothing
  fs::create_symlink("../m.txt", corpus / "z/2.txt");
  CHECK(open_bytes(corpus).fingerprint() == without_links);

  write(folder / "elsewhere/deep/x.txt", "x");
  write(folder / "store/0123", "{\"text\": \"blob\"}\n");
  fs::create_directory_symlink("../elsewhere", corpus / "more");
  fs::create_directory_symlink("../elsewhere/deep", corpus / "again");
  fs::create_symlink("../store/0123", corpus / "b.jsonl");
  CHECK(corpus_files(corpus) == std::vector<fs::path>{corpus / "again/x.txt", corpus / "b.jsonl", corpus / "m.txt",
                                                      corpus / "z/1.txt"});
  CHECK(text_of(open_bytes(corpus)) == "x|blob|m|1|");

  const fs::path mounted = folder / "mounted";  // as a ConfigMap is
  write(mounted / "..2026_11_27/c.txt", "c");
  fs::create_directory_symlink("..2026_11_27", mounted / "..data");
  fs::create_symlink("..data/c.txt", mounted / "c.txt");
  CHECK(corpus_files(mounted) == std::vector<fs::path>{mounted / "c.txt"});
}

TEST_CASE("corpus: a link in a circle, or to nothing under the ending of a corpus, is an error", "[data]") {
  const test::TemporaryFolder folder;
  write(folder / "corpus/a.jsonl", "{\"text\": \"a\"}\n");
  const auto refused = [&](const std::string& target, const std::string& name, const std::string& message) {
    const fs::path link = folder / "corpus" / name;
    fs::create_directories(link.parent_path());
    fs::create_symlink(target, link);
    CHECK_THROWS_AS(open_bytes(folder / "corpus"), InputError);
    CHECK_THROWS_WITH(open_bytes(folder / "corpus"), Catch::Contains(message));
    fs::remove(link);
  };
  refused("objects/b", "b.jsonl", "b.jsonl: this link leads to nothing (objects/b)");
  refused("a.jsonl/b", "b.TXT", "b.TXT: this link leads to nothing");
  refused("round", "round", "round: a link on this path leads round in a circle");
  refused("..", "deep/up", "deep/up: a link on this path leads round in a circle");
  refused("..", "up", "up/corpus: a link on this path leads round in a circle");
  CHECK(text_of(open_bytes(folder / "corpus")) == "a|");
}

TEST_CASE("corpus: an empty document is a document with an end", "[data]") {
  const test::TemporaryFolder folder;
  write(folder / "a.jsonl", "{\"text\": \"a\"}\n{\"text\": \"\"}\n{\"text\": \"b\"}\n");
  const auto bytes = tokenizer::load_tokenizer("bytes");
  CHECK(text_of(open_bytes(folder / "a.jsonl")) == "a||b|");
  // The keys under which it was tokenised when empty documents had no end: only where the ids differ is it another.
  CHECK(open_bytes(folder / "a.jsonl").fingerprint() != "9f2344bc42691e0df9c826c4cdcb2aab");
  CHECK(open_corpus({.path = folder / "a.jsonl", .append_eos = false}, *bytes).fingerprint() ==
        "8a55aa61f2a5e1026c3e77583cd020e5");

  const auto read = [&](const std::string& lines, const std::string& field = "text") {
    write(folder / "b.jsonl", lines);
    return open_bytes(folder / "b.jsonl", field);
  };
  CHECK(text_of(read("{\"text\": \"\"}")) == "|");
  CHECK(text_of(read("{\"id\": NaN, \"text\" :\t\"\"}\n{\"\\u0074ext\":\"\"}\n")) == "||");
  CHECK(text_of(read("{\"t\\\"\": \"\"}", "t\"")) == "|");
  CHECK(text_of(read("{\"t\\u00e9\": \"\"}", "t\u00e9")) == "|");
  CHECK_THROWS_WITH(open_corpus({.path = folder / "b.jsonl", .field = "t\u00e9", .append_eos = false}, *bytes),
                    Catch::Contains("b.jsonl: the corpus is empty"));
}

TEST_CASE("corpus: other empty strings than documents change no key", "[data]") {
  const test::TemporaryFolder folder;
  write(folder / "a.jsonl", "{\"text\": \"a \\\"\\\" b\", \"title\": \"\", \"of\": {\"text\": \"\"}}\n");
  CHECK_FALSE(has_empty_document(MappedFile(folder / "a.jsonl"), "text"));
  CHECK(has_empty_document(MappedFile(folder / "a.jsonl"), "title"));
  write(folder / "a.txt", "{\"text\": \"\"}\n");
  CHECK_FALSE(has_empty_document(MappedFile(folder / "a.txt"), "text"));
}

TEST_CASE("corpus: a field that nobody reads may hold NaN and the infinities, as Python writes them", "[data]") {
  const test::TemporaryFolder folder;
  const auto read = [&](const std::string& line) {
    write(folder / "a.jsonl", line + "\n");
    return text_of(open_bytes(folder / "a.jsonl"));
  };
  CHECK(read("{\"text\": \"NaN, \\\"Infinity\", \"score\":NaN, \"more\": [Infinity,-Infinity , {\"x\": NaN}]}") ==
        "NaN, \"Infinity|");
  CHECK_THROWS_WITH(read("{\"text\": NaN}"), Catch::Contains("a.jsonl:1: the field 'text' must be a string, is number"));
  for (const char* score : {"NaNs", "1NaN", "nan", "+Infinity", "--Infinity", "Infinit"})
    CHECK_THROWS_WITH(read(fmt::format("{{\"text\": \"a\", \"score\": {}}}", score)),
                      Catch::Contains("a.jsonl:1: not JSON at byte "));
  CHECK_THROWS_WITH(read("{\"text\": \"a\", NaN: 1}"), Catch::Contains("a.jsonl:1: not JSON at byte "));
  CHECK_THROWS_WITH(read("{\"score\": NaN, \"text\": a}"), Catch::Contains("not JSON at byte 24 of the line"));
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
        ":1: no field 'text', did you mean 'texts'?; the line has texts, id");
  fails("number.jsonl", "{\"text\": 5}", ":1: the field 'text' must be a string, is number");
  fails("list.jsonl", "[1]", ":1: must be a JSON object");
  CHECK_THROWS_WITH(open_bytes(folder / "none.txt"), Catch::Contains("none.txt: no such file"));
  write(folder / "corpus.bin", "x");
  CHECK_THROWS_WITH(open_bytes(folder / "corpus.bin"), Catch::Contains("a corpus is a .txt file"));
  fs::create_directory(folder / "nothing");
  CHECK_THROWS_WITH(open_bytes(folder / "nothing"), Catch::Contains("no .txt, .jsonl, .parquet, .arrow or .json"));
  CHECK(files_of(folder / ".trainyard").empty());  // nothing half-made is left behind
}

TEST_CASE("corpus: a folder with JSON lines in a data.json is one, as torchtitan's c4_test", "[data]") {
  const test::TemporaryFolder folder;
  const std::string lines =
      "{\"text\": \"ab\", \"timestamp\": \"2019\", \"url\": \"u\"}\n"
      "{\"text\": \"c\", \"timestamp\": \"2020\", \"url\": \"v\"}\n";
  fs::create_directory(folder / "c4_test");
  write(folder / "c4_test" / "data.json", lines);
  CHECK(text_of(open_bytes(folder / "c4_test")) == "ab|c|");
  CHECK(text_of(open_bytes(folder / "c4_test" / "data.json")) == "ab|c|");
  write(folder / "c4_test" / "a.txt", "x");  // then what is called .json may be anything
  CHECK(text_of(open_bytes(folder / "c4_test")) == "x|");
  write(folder / "list.json", "[\n{\"text\": \"a\"}]\n");
  CHECK_THROWS_WITH(open_bytes(folder / "list.json"),
                    Catch::Contains("list.json: begins with a list; a .json corpus has a JSON object on each line"));
}

TEST_CASE("corpus: of several mistakes the first in the file is told, with any number of threads", "[data]") {
  const test::TemporaryFolder folder;
  std::string lines;
  size_t number = 0;
  for (; lines.size() < 3 * kPartBytes; ++number) lines += "{\"text\": \"" + std::string(500, 'a') + "\"}\n";
  write(folder / "a.jsonl", lines + "[]\n" + lines + "{}\n");
  const auto bytes = tokenizer::load_tokenizer("bytes");
  for (const int threads : {1, 4})
    CHECK_THROWS_WITH(open_corpus({.path = folder / "a.jsonl", .how = {.threads = threads}}, *bytes),
                      Catch::Contains(fmt::format("a.jsonl:{}: must be a JSON object", number + 1)));
}

TEST_CASE("corpus: a pipe is refused, by its own name or in a folder", "[data]") {
  const test::TemporaryFolder folder;
  const fs::path pipe = folder / "pipe.txt";
  write(folder / "a.txt", "abc");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const auto refused = Catch::Equals(pipe.string() + ": not a regular file but a pipe");
  CHECK_THROWS_WITH(open_bytes(pipe), refused);
  CHECK_THROWS_WITH(open_bytes(folder.path()), refused);
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

}  // namespace trainyard::data
