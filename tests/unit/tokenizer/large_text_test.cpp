#include <catch2/catch.hpp>

#include <fmt/format.h>
#include <openssl/sha.h>
#include <sys/resource.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/files.h"
#include "data/corpus.h"
#include "support/support.h"
#include "tokenizer/tokenizer.h"

namespace trainyard::tokenizer {
namespace {
using nlohmann::json;

std::string sha256(const std::vector<int32_t>& ids) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(ids.data()), ids.size() * sizeof(int32_t),
         digest);  // this machine is little-endian
  std::string hex;
  for (const unsigned char byte : digest) hex += fmt::format("{:02x}", byte);
  return hex;
}

struct Golden {
  std::unique_ptr<Tokenizer> tokenizer;
  json expected;
};

Golden load(const std::string& name) {
  const auto data = test::test_data();
  return {load_tokenizer(data / (name + "_tokenizer")),
          json::parse(read_file(data / "tokenizer-golden" / (name + ".json")))};
}

}  // namespace

TEST_CASE("goldens: whole files in one call are the reference's, id by id", "[tokenizer]") {
  if (test::test_data().empty()) return test::skip("no reference data");
  const std::string name = GENERATE("qwen2", "llama3", "llama2", "t5", "torchtitan");
  const Golden golden = load(name);
  for (const json& expected : golden.expected["texts"]) {
    INFO(name << ": " << expected["file"]);
    const auto ids = golden.tokenizer->encode(read_file(test::test_data() / expected["file"].get<std::string>()));
    REQUIRE(ids.size() == expected["tokens"].get<size_t>());
    CHECK(std::vector<int32_t>(ids.begin(), ids.begin() + 32) == expected["first"].get<std::vector<int32_t>>());
    CHECK(std::vector<int32_t>(ids.end() - 16, ids.end()) == expected["last"].get<std::vector<int32_t>>());
    CHECK(sha256(ids) == expected["sha256_int32_le"].get<std::string>());
  }
}

TEST_CASE("long words: a megabyte without a space takes about a second, not hours", "[tokenizer]") {
  if (test::test_data().empty()) return test::skip("no reference data");
  const std::string name = GENERATE("qwen2", "llama3");
  const auto tokenizer = load_tokenizer(test::test_data() / (name + "_tokenizer"));
  for (const char c : {'a', ' ', '\n', '.'}) {
    const std::string text(size_t{1} << 20, c);
    const auto ids = tokenizer->encode(text);
    CHECK((tokenizer->decode(ids) == text));
    CHECK(ids.size() < text.size());
  }
}

TEST_CASE("long words: 20 MB of them are tokenised in bounded memory", "[tokenizer]") {
  if (test::test_data().empty()) return test::skip("no reference data");
  const std::string name = GENERATE("t5", "llama2", "qwen2");
  CAPTURE(name);
  const auto tokenizer = load_tokenizer(test::test_data() / (name + "_tokenizer"));
  const test::TemporaryFolder folder;
  std::string text;
  while (text.size() < 20'000'000) text += std::string(100'000, 'a') + ' ';
  write_file_atomically(folder / "a.txt", text);
  const auto most_kib = [] {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return used.ru_maxrss;
  };
  const long before = most_kib();
  CHECK(data::open_corpus({.path = folder / "a.txt", .how = {.threads = 2}}, *tokenizer).size() > 0);
  CHECK((most_kib() - before) / 1024 < 300);  // MiB, 20 of them the file's
}

TEST_CASE("Llama 2: a long text, encoded word by word, begins with the ids that its beginning has as a whole",
          "[tokenizer]") {
  if (test::test_data().empty()) return test::skip("no reference data");
  const auto tokenizer = load_tokenizer(test::test_data() / "llama2_tokenizer");
  const std::vector<std::string> parts{" ",      "  ",     "\n", "\t", "\xE2\x96\x81", "a", "the", "word", "'s",
                                       "\u00E9", "\u4E2D", "1",  "."};
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::string text;
    while (text.size() < 2000) text += parts[random() % parts.size()];
    text += 'x';
    const auto whole = tokenizer->encode(text);
    const auto by_words = tokenizer->encode(text + " " + std::string(8000, 'y'));
    REQUIRE(by_words.size() > whole.size());
    CHECK((std::vector(by_words.begin(), by_words.begin() + static_cast<ptrdiff_t>(whole.size())) == whole));
  }
}

}  // namespace trainyard::tokenizer
