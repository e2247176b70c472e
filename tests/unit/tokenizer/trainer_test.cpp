#include <catch2/catch.hpp>

#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "support/support.h"
#include "tokenizer/bpe/trainer.h"
#include "tokenizer/tokenizer.h"

namespace trainyard::tokenizer {
namespace {
using nlohmann::json;

using Words = std::map<std::vector<int32_t>, int64_t>;

/// The definition, counted from the start for every merge.
std::vector<std::pair<int32_t, int32_t>> merges_by_definition(Words words, int merges) {
  std::vector<std::pair<int32_t, int32_t>> found;
  for (int32_t id = 256; id < 256 + merges; ++id) {
    std::map<std::pair<int32_t, int32_t>, int64_t> counts;
    for (const auto& [word, times] : words)
      for (size_t i = 0; i + 1 < word.size(); ++i) counts[{word[i], word[i + 1]}] += times;
    const auto best = std::ranges::max_element(
        counts, [](const auto& a, const auto& b) { return a.second < b.second; });  // the first of equals
    if (best == counts.end() || best->second < 2) break;
    found.push_back(best->first);
    Words joined;
    for (const auto& [word, times] : words) {
      std::vector<int32_t> out;
      for (size_t i = 0; i < word.size(); ++i) {
        const bool is_pair = i + 1 < word.size() && std::pair(word[i], word[i + 1]) == best->first;
        out.push_back(is_pair ? id : word[i]);
        i += is_pair;
      }
      joined[out] += times;
    }
    words = std::move(joined);
  }
  return found;
}

/// Words of three letters in no order, the same each time.
std::string some_text(int words) {
  std::string text;
  uint32_t state = 1;
  for (int i = 0; i < words; ++i) {
    for (int letter = 0; letter < 6; ++letter)
      text += static_cast<char>('a' + ((state = state * 1664525 + 1013904223) >> 28) % 5);
    text += ' ';
  }
  return text;
}

TrainedBpe train(std::string_view text, int64_t vocab_size) {
  BpeTrainer trainer;
  trainer.add(text, "text");
  return trainer.train(vocab_size);
}

}  // namespace

TEST_CASE("trainer: merges are those of the definition", "[tokenizer]") {
  const std::string text = some_text(300);
  Words words;
  std::vector<int32_t> word;
  for (const char c : text) {  // GPT-2's pattern puts the space in front of its word
    if (c == ' ' && !word.empty()) ++words[word], word.clear();
    word.push_back(static_cast<unsigned char>(c));
  }
  ++words[word];
  const auto expected = merges_by_definition(words, 150);
  const json trained = json::parse(train(text, 257 + 150).tokenizer_json);
  const auto& vocab = trained["model"]["vocab"];
  REQUIRE(trained["model"]["merges"].size() == expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto merge = trained["model"]["merges"][i].get<std::string>();
    const size_t space = merge.find(' ');
    CHECK(vocab[merge.substr(0, space)] == expected[i].first);
    CHECK(vocab[merge.substr(space + 1)] == expected[i].second);
  }
}

TEST_CASE("trainer: what it writes loads, gives text back, and ends documents", "[tokenizer]") {
  const test::TemporaryFolder folder;
  const TrainedBpe trained = train(some_text(300), 300);
  CHECK(trained.vocab_size == 300);
  write_file_atomically(folder / "tokenizer.json", trained.tokenizer_json);
  write_file_atomically(folder / "tokenizer_config.json", trained.tokenizer_config_json);
  const auto tokenizer = load_tokenizer(folder.path());
  CHECK(tokenizer->vocab_size() == 300);
  CHECK(tokenizer->eos_id() == 299);
  const std::string text = "abcde \xE2\x82\xAC <|endoftext|>\n\x01";
  const auto ids = tokenizer->encode(text);
  CHECK(tokenizer->decode(ids) == text);
  CHECK(std::ranges::find(ids, 299) == ids.end());
}

TEST_CASE("trainer: the order and division of the text change nothing", "[tokenizer]") {
  BpeTrainer parts;
  parts.add("low lower", "b");
  parts.add("newest newest", "a");
  BpeTrainer other;
  other.add("newest newest", "a");
  other.add("low lower", "b");
  CHECK(parts.train(300).tokenizer_json == other.train(300).tokenizer_json);
}

TEST_CASE("trainer: a text that is used up ends early, and sizes and bytes that do not fit are refused",
          "[tokenizer]") {
  CHECK(train("aaaa", 1000).vocab_size == 258);  // "aa", which then stands there twice in a row, once
  CHECK(train("", 1000).vocab_size == 257);
  CHECK_THROWS_WITH(train("a", 256), Catch::Contains("vocabulary size 256: must be from 257"));
  CHECK_THROWS_AS(train("a", int64_t{1} << 40), InputError);
  CHECK_THROWS_WITH(train("ab\xFF", 300), Catch::Contains("text: no UTF-8 at byte 2"));
}

}  // namespace trainyard::tokenizer
