#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "data/corpus.h"
#include "data/loaders.h"
#include "support/support.h"

// written_before/: a tokenizer, two corpora, and the token caches that a version wrote which found no added tokens in
// text.
namespace trainyard::data {
namespace {
namespace fs = std::filesystem;
using tokenizer::SpecialTokensAre;

constexpr const char *kPlain = "d61eb515927205a4d56fe263805435da", *kWords = "fd83557f5146d42c09177a076ae50691";

/// A copy, as caches are written into it.
struct WrittenBefore {
  test::TemporaryFolder folder;
  WrittenBefore() {
    fs::copy(TRAINYARD_WRITTEN_BEFORE, folder.path(), fs::copy_options::recursive);
    for (const char* key : {kPlain, kWords}) REQUIRE(fs::exists(cache(key)));
  }
  [[nodiscard]] fs::path cache(const std::string& key) const { return folder / (key + ".tokens"); }
  [[nodiscard]] TokenArray open(const char* corpus, SpecialTokensAre special = SpecialTokensAre::Text) const {
    const auto tokenizer = tokenizer::load_tokenizer(folder / "tokenizer", special);
    return open_corpus({.path = folder / corpus, .cache_dir = folder.path()}, *tokenizer);
  }
};

std::vector<int32_t> ids_of(const TokenArray& tokens) {
  std::vector<int32_t> ids(static_cast<size_t>(tokens.size()));
  tokens.copy(0, ids);
  return ids;
}

/// As the version wrote it into a checkpoint.
nlohmann::json older_state(const std::string& key) {
  return {{"corpus", key}, {"seed", 0}, {"sequence_length", 4}, {"sequences_seen", 1}, {"shuffle", true}};
}

void resume(const TokenArray& tokens, const nlohmann::json& state) {
  packed_loader(tokens, {.sequence_length = 4, .batch_size = 1})->load_state(state);
}

}  // namespace

TEST_CASE("added tokens: a corpus without one keeps its ids, its fingerprint and its place", "[data]") {
  const WrittenBefore written;
  const std::vector<int32_t> before = ids_of(TokenArray::map(written.cache(kPlain), "plain"));
  const TokenArray tokens = written.open("plain.jsonl");
  CHECK(tokens.fingerprint() == kPlain);
  CHECK(ids_of(tokens) == before);
  CHECK_NOTHROW(resume(tokens, older_state(kPlain)));
  CHECK(written.open("plain.jsonl").fingerprint() == kPlain);  // out of its cache
}

TEST_CASE("added tokens: a corpus with one is tokenised anew, and its older stream is not resumed", "[data]") {
  const WrittenBefore written;
  const std::vector<int32_t> before = ids_of(TokenArray::map(written.cache(kWords), "words"));
  const TokenArray tokens = written.open("words.jsonl");
  const std::vector<int32_t> ids = ids_of(tokens);
  CHECK(tokens.fingerprint() != kWords);
  CHECK(std::ranges::count(ids, 260) == 1);  // <think>
  CHECK(std::ranges::count(ids, 261) == 1);  // New York
  CHECK(std::ranges::count(ids, 259) == 0);  // <|im_start|> is special
  CHECK(ids_of(TokenArray::map(written.cache(kWords), "words")) == before);
  CHECK_THROWS_WITH(resume(tokens, older_state(kWords)),
                    Catch::Contains("is not what it was when it was saved by a version") &&
                        Catch::Contains("took added tokens for text"));
  CHECK(ids_of(written.open("words.jsonl")) == ids);
}

TEST_CASE("added tokens: special ones that are parsed make another stream, but only where there are any", "[data]") {
  const WrittenBefore written;
  const TokenArray words = written.open("words.jsonl"), parsed = written.open("words.jsonl", SpecialTokensAre::Parsed);
  CHECK(words.fingerprint() != parsed.fingerprint());
  const std::vector<int32_t> ids = ids_of(parsed);
  CHECK(std::ranges::count(ids, 259) == 1);
  CHECK(written.open("plain.jsonl", SpecialTokensAre::Parsed).fingerprint() != kPlain);  // it has <|im_start|>
  write_file_atomically(written.folder / "none.jsonl", "{\"text\": \"them\"}\n");
  CHECK(written.open("none.jsonl", SpecialTokensAre::Parsed).fingerprint() == written.open("none.jsonl").fingerprint());
}

TEST_CASE("added tokens: a text in memory has a fingerprint of its own only where it has one", "[data]") {
  const WrittenBefore written;
  const auto as_text = tokenizer::load_tokenizer(written.folder / "tokenizer"),
             parsed = tokenizer::load_tokenizer(written.folder / "tokenizer", SpecialTokensAre::Parsed);
  const auto print_of = [](const char* text, const tokenizer::Tokenizer& by) {
    return tokenise_text(text, by, true, "").fingerprint();
  };
  CHECK(print_of("them", *as_text) == print_of("them", *parsed));
  CHECK(print_of("a <think>", *as_text) == print_of("a <think>", *parsed));
  CHECK(print_of("<|im_start|>", *as_text) != print_of("<|im_start|>", *parsed));
}

TEST_CASE("corpus: more than one document are several files, or several lines of one", "[data]") {
  const test::TemporaryFolder folder;
  const auto has_several = [&] { return has_several_documents({.path = folder / "corpus"}); };
  fs::create_directories(folder / "corpus");
  write_file_atomically(folder / "corpus/a.jsonl", "\n{\"text\": \"one\"}\n \n");
  CHECK_FALSE(has_several());
  write_file_atomically(folder / "corpus/empty.txt", "");
  CHECK_FALSE(has_several());
  write_file_atomically(folder / "corpus/b.txt", "two\nlines");
  CHECK(has_several());
  fs::remove(folder / "corpus/a.jsonl");
  CHECK_FALSE(has_several());
  write_file_atomically(folder / "corpus/b.txt", "");
  write_file_atomically(folder / "corpus/c.jsonl", "{\"text\": \"one\"}\n{\"text\": \"two\"}");
  CHECK(has_several());
}

}  // namespace trainyard::data
