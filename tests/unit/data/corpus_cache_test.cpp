#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "data/documents.h"
#include "support/captured_log.h"
#include "support/support.h"
#include "unit/data/corpora.h"

namespace trainyard::data {

TEST_CASE("corpus: resuming in the stream of other files is refused, with the rules that may have changed it",
          "[data]") {
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

}  // namespace trainyard::data
