#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "data/corpus.h"
#include "data/documents.h"
#include "data/loaders.h"
#include "support/captured_log.h"
#include "support/support.h"
#include "tokenizer/files/readers.h"
#include "tokenizer/fingerprint.h"
#include "tokenizer/text/byte_level.h"
#include "tokenizer/text/splitter.h"

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

/// A byte-level BPE that splits by `regex`, and joins two bytes of "a" and the space, and of a Cyrillic letter.
std::unique_ptr<tokenizer::Tokenizer> pairs_tokenizer(const std::string& regex, bool add_prefix_space,
                                                      const nlohmann::json& added = nlohmann::json::array()) {
  nlohmann::json vocab, merges = nlohmann::json::array();
  for (int byte = 0; byte < 256; ++byte)
    vocab[tokenizer::to_byte_level(std::string(1, static_cast<char>(byte)))] = byte;
  const std::string letter = "\u0430";
  const std::vector<std::pair<std::string, std::string>> pairs{
      {letter.substr(0, 1), letter.substr(1)}, {letter, letter}, {letter + letter, letter + letter}, {"a", " "}, {"a ", "a"}};
  for (const auto& [left, right] : pairs) {
    vocab[tokenizer::to_byte_level(left + right)] = 256 + merges.size();
    merges.push_back({tokenizer::to_byte_level(left), tokenizer::to_byte_level(right)});
  }
  const nlohmann::json split{{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}};
  const nlohmann::json level{{"type", "ByteLevel"}, {"add_prefix_space", add_prefix_space}, {"use_regex", false}};
  const nlohmann::json whole{{"added_tokens", added},
                             {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {split, level}}}},
                             {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}}}};
  return tokenizer::read_hugging_face(whole.dump(), "tokenizer.json", {});
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

TEST_CASE("corpus: resuming in the stream of other files is refused, with the rules that may have changed it", "[data]") {
  const test::TemporaryFolder folder;
  write(folder / "corpus/a.txt", "abcdefgh");
  const auto loader_of = [&] {
    return packed_loader(open_bytes(folder / "corpus"), {.sequence_length = 2, .batch_size = 1});
  };
  const auto loader = loader_of();
  loader->next();
  nlohmann::json older = loader->state();
  REQUIRE(older.erase("reading_rules") == 1);  // as versions wrote it that had other rules
  CHECK_NOTHROW(loader_of()->load_state(older));
  CHECK((loader_of()->state().at("corpus") == older.at("corpus")));
  const nlohmann::json newer = loader->state();
  write(folder / "corpus/b.TXT", "ijkl");
  CHECK_THROWS_WITH(loader_of()->load_state(older),
                    Catch::Contains("corpus is not what it was when it was saved by a version that passed over linked "
                                    "folders, endings such as .TXT and the ends of empty documents, and read a file as "
                                    "often as it had names; and took added tokens for text, "));
  older["reading_rules"] = 2;
  CHECK_THROWS_WITH(loader_of()->load_state(older),
                    Catch::Contains("when it was saved by a version that took added tokens for text, read some split "
                                    "patterns of tokenizer.json otherwise, ") &&
                        Catch::Contains(", and cut long documents inside words; "));
  CHECK_THROWS_WITH(loader_of()->load_state(newer), Catch::Contains("is not what it was when it was saved; "));
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

TEST_CASE("corpus: a cache whose key is not the one that its name stands for is made anew", "[data]") {
  const test::TemporaryFolder folder;
  write(folder / "a.txt", "first"), write(folder / "b.txt", "other");
  const auto open = [&](const std::string& name) {
    return open_corpus({.path = folder / name, .cache_dir = folder / "cache"}, *tokenizer::load_tokenizer("bytes"));
  };
  const std::string a = open("a.txt").fingerprint(), b = open("b.txt").fingerprint();
  fs::copy_file(folder / ("cache/" + b + ".tokens"), folder / ("cache/" + a + ".tokens"),
                fs::copy_options::overwrite_existing);
  const test::CapturedLog log;
  CHECK(text_of(open("a.txt")) == "first|");
  CHECK_THAT(log.text(), Catch::Contains(a + ".tokens: holds another corpus than its name says"));
  CHECK(open("a.txt").fingerprint() == a);
}

TEST_CASE("corpus: what is read as it always was keeps its key, by which caches and checkpoints know it", "[data]") {
  const test::TemporaryFolder folder;
  write(folder / "corpus/a.jsonl", "{\"text\": \"one\"}\n{\"text\": \"two\"}\n");
  write(folder / "corpus/b.txt", "three");
  CHECK(open_bytes(folder / "corpus").fingerprint() == "668344570c3ea9373a9d0572083c3b90");
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

TEST_CASE("corpus: who is asked to stop while it tokenises or waits ends at once and leaves nothing behind", "[data]") {
  const test::TemporaryFolder folder;
  write(folder / "a.txt", std::string(8 * kPartBytes, 'a'));
  const auto bytes = tokenizer::load_tokenizer("bytes");
  int questions = 0;
  CorpusOptions options{.path = folder / "a.txt",
                        .how = {.threads = 2, .asked_to_stop = [&] { return ++questions > 3; }}};
  CHECK_THROWS_AS(open_corpus(options, *bytes), TerminatedError);
  CHECK(files_of(folder / ".trainyard").empty());

  options.how.asked_to_stop = [] { return false; };
  open_corpus(options, *bytes);
  const fs::path cached = files_of(folder / ".trainyard").at(0), partial = cached.string() + ".partial";
  fs::remove(cached);
  const UniqueFd holder(::open(partial.c_str(), O_RDWR | O_CREAT, 0600));
  REQUIRE(::flock(holder.get(), LOCK_EX) == 0);
  options.how.asked_to_stop = [&] { return ++questions > 20; };
  CHECK_THROWS_WITH(open_corpus(options, *bytes), Catch::Contains("waiting for who writes " + partial.string()));
  CHECK_FALSE(fs::exists(cached));
}

TEST_CASE("corpus: ids are the same with any number of threads, and for one text those of the whole", "[data]") {
  if (test::test_data().empty()) return test::skip("no reference data");
  const std::string name = GENERATE("qwen2", "llama2", "t5");
  CAPTURE(name);
  const auto tokenizer = tokenizer::load_tokenizer(test::test_data() / (name + "_tokenizer"));
  const std::string shakespeare = read_file(test::test_data() / "tinyshakespeare/input.txt");
  const std::string text = shakespeare + shakespeare.substr(0, 400'000);  // two parts, the second of 400 kB and more
  std::string lines;
  for (size_t begin = 0; begin < text.size(); begin += 4000)
    lines += nlohmann::json{{"text", text.substr(begin, 4000)}}.dump() + "\n";
  const test::TemporaryFolder folder;
  write(folder / "corpus/a.txt", text);
  write(folder / "corpus/b.jsonl", lines);
  std::vector<std::vector<int32_t>> ids;
  for (const int threads : {1, 2, 5}) {
    const TokenArray tokens = open_corpus(
        {.path = folder / "corpus", .cache_dir = folder / std::to_string(threads), .how = {.threads = threads}},
        *tokenizer);
    ids.emplace_back(static_cast<size_t>(tokens.size()));
    tokens.copy(0, ids.back());
  }
  CHECK((ids[1] == ids[0]));  // in brackets: a failure would print them all
  CHECK((ids[2] == ids[0]));
  const std::vector<int32_t> whole = tokenizer->encode(text);
  REQUIRE(ids[0].size() > whole.size());
  CHECK((std::vector(ids[0].begin(), ids[0].begin() + static_cast<ptrdiff_t>(whole.size())) == whole));
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
  const std::string name = GENERATE("qwen2", "llama3", "torchtitan", "llama2");
  CAPTURE(name);
  const auto tokenizer = tokenizer::load_tokenizer(test::test_data() / (name + "_tokenizer"));
  std::string text = read_file(test::test_data() / "wikitext-2/wiki.test.txt").substr(0, 100'000);
  // Lines of no letter of ASCII; a line's end before a wide space, or before a sign that a pattern may take in, is none.
  const std::array lines{"\u7532\u3002\n", "\u3000\u4E59\n", "/\u4E19!\n"};
  for (size_t line = 0; line < 2000; ++line) text += lines[line % lines.size()];
  const IsBorder is_border = [&](std::string_view document, size_t at) { return tokenizer->is_border(document, at); };
  std::vector<int32_t> ids;
  for (size_t begin = 0, length = 0; begin < text.size(); begin += length) {
    length = part_length(text, begin, is_border, {.usual = 3'000}).value();
    const auto part = tokenizer->encode_after(text.substr(0, begin), std::string_view(text).substr(begin, length));
    ids.insert(ids.end(), part.begin(), part.end());
  }
  CHECK((ids == tokenizer->encode(text)));  // in brackets: a failure would print them all
}

TEST_CASE("part_length: a part ends at the last border, else at the next, else with the document", "[data]") {
  const std::string text = "\u20AC\u20AC|\u20AC|\u20AC\u20AC\u20AC\u20AC\u20AC|\u20AC\u20AC";  // borders at 6, 10 and 26 of 33
  const IsBorder at_bars = [](std::string_view document, size_t at) { return document[at] == '|'; };
  const IsBorder everywhere = [](std::string_view, size_t) { return true; };
  const auto lengths = [&](const IsBorder& is_border, const PartSizes& sizes) {
    std::vector<size_t> all;
    for (size_t begin = 0; begin < text.size();) {
      const auto length = part_length(text, begin, is_border, sizes);
      if (!length) break;
      all.push_back(*length);
      begin += *length;
    }
    return all;
  };
  using Lengths = std::vector<size_t>;
  CHECK(lengths(at_bars, {12, 64}) == Lengths{10, 16, 7});
  CHECK(lengths(at_bars, {8, 16}) == Lengths{6, 4, 16, 7});
  CHECK(lengths(at_bars, {8, 15}) == Lengths{6, 4});  // the next border is 16 bytes on
  CHECK(lengths(at_bars, {5, 5}).empty());
  CHECK(lengths(everywhere, {5, 64}) == Lengths{3, 4, 4, 3, 3, 3, 3, 4, 3, 3});  // never inside a character
  CHECK(lengths([](std::string_view, size_t) { return false; }, {5, 33}) == Lengths{33});
  CHECK(lengths([](std::string_view, size_t) { return false; }, {5, 32}).empty());
}

TEST_CASE("corpus: a long document has the ids of the whole, whatever its script and its tokenizer's pattern", "[data]") {
  const auto [regex, prefix, word] = GENERATE(table<std::string, bool, std::string>(
      {{tokenizer::kGpt2Pattern, false, "\u0430\u0430\u0430\u0430 "},  // no letter of ASCII, nor a line
       {tokenizer::kGpt2Pattern, true, "abcdefg\n"},
       {R"([^\n]+\n)", false, "a a a\n"},  // merges go over spaces
       {"[^x]+", false, "a a a\n"}}));
  CAPTURE(regex, prefix, word);
  const auto tokenizer = pairs_tokenizer(regex, prefix);
  std::string text;
  while (text.size() < 2 * kPartBytes + 1000) text += word;
  const test::TemporaryFolder folder;
  write(folder / "a.txt", text);
  write(folder / "a.jsonl", nlohmann::json{{"text", text}}.dump() + "\n");
  const auto whole = tokenizer->encode(text);
  for (const char* const name : {"a.txt", "a.jsonl"}) {
    const TokenArray tokens = open_corpus({.path = folder / name, .append_eos = false}, *tokenizer);
    std::vector<int32_t> ids(static_cast<size_t>(tokens.size()));
    tokens.copy(0, ids);
    CHECK((ids == whole));
  }
}

TEST_CASE("corpus: a long document is cut at no added token, nor where its flags reach", "[data]") {
  const std::string flag = GENERATE("lstrip", "rstrip", "single_word", "normalized");
  CAPTURE(flag);
  const nlohmann::json token{{"id", 261}, {"content", "w x"}, {"special", false}, {flag, true}};
  const auto tokenizer = pairs_tokenizer(tokenizer::kGpt2Pattern, true, nlohmann::json::array({token}));
  std::string text = "aa ";
  while (text.size() < 2 * kPartBytes + 1000) text += text.size() % kPartBytes < 2000 ? "a a " : "w x\n";
  const test::TemporaryFolder folder;
  write(folder / "a.txt", text);
  const TokenArray tokens = open_corpus({.path = folder / "a.txt", .append_eos = false}, *tokenizer);
  std::vector<int32_t> ids(static_cast<size_t>(tokens.size()));
  tokens.copy(0, ids);
  CHECK((ids == tokenizer->encode(text)));
  CHECK(std::ranges::count(ids, 261) > 100'000);
}

TEST_CASE("corpus: a document that cannot be cut is refused beyond 64 MiB, with its place, its tokenizer and what helps",
          "[data]") {
  const auto tokenizer = pairs_tokenizer(tokenizer::kGpt2Pattern, false);
  const test::TemporaryFolder folder;
  const std::string text = "one two\nthree\n" + std::string(PartSizes{}.largest + 1, 'a');
  write(folder / "a.txt", text);
  write(folder / "a.jsonl", "{\"text\": \"b\"}\n" + nlohmann::json{{"text", text}}.dump() + "\n");
  for (const std::string place : {"a.txt:3", "a.jsonl:2"}) {
    const CorpusOptions options{.path = folder / place.substr(0, place.find(':')), .tokenizer = "models/eager"};
    CHECK_THROWS_WITH(open_corpus(options, *tokenizer),
                      Catch::Contains(place + ": from here on this document has no place within 64") &&
                          Catch::Contains("the tokenizer models/eager") && Catch::Contains(".jsonl file"));
  }
}

TEST_CASE("corpus: the key is the former one where former versions cut at borders, and another where they did not",
          "[data]") {
  const auto [regex, word, is_former] = GENERATE(table<std::string, std::string, bool>(
      {{tokenizer::kGpt2Pattern, "the word ", true},
       {tokenizer::kGpt2Pattern, "\u0430\n", true},
       {tokenizer::kGpt2Pattern, "\u0430 ", false},
       {R"(\p{L}+)", "the word ", false}}));
  CAPTURE(regex, word);
  const auto tokenizer = pairs_tokenizer(regex, false);
  const test::TemporaryFolder folder;
  for (const bool is_long : {false, true}) {
    std::string text;
    while (text.size() < (is_long ? kPartBytes + 1000 : 1000)) text += word;
    const std::string line = nlohmann::json{{"text", text}}.dump() + "\n";
    write(folder / "a.txt", text);
    write(folder / "a.jsonl", line);
    const auto former = [&](const char* field, const char* ending, const std::string& content) {
      return tokenizer::Fingerprint()
          .add("corpus 1")
          .add(tokenizer->fingerprint())
          .add("no eos")
          .add(field)
          .add(ending)
          .add(content)
          .hex();
    };
    const bool same = is_former || !is_long;
    CHECK((open_corpus({.path = folder / "a.txt"}, *tokenizer).fingerprint() == former("", "txt", text)) == same);
    CHECK((open_corpus({.path = folder / "a.jsonl"}, *tokenizer).fingerprint() == former("text", "jsonl", line)) == same);
  }
}

}  // namespace trainyard::data
