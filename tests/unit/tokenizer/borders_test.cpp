#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/files.h"
#include "support/support.h"
#include "tokenizer/files/readers.h"
#include "tokenizer/text/byte_level.h"
#include "tokenizer/text/splitter.h"
#include "tokenizer/tokenizer.h"

namespace trainyard::tokenizer {
namespace {
using nlohmann::json;

struct Rules {
  std::string name;
  std::vector<json> steps;
  bool add_prefix_space = false;
  json normalizer = {};
  std::vector<AddedToken> added = {};
};

json split(const std::string& regex) {
  return {{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}};
}

json literal(const std::string& text) {
  return {{"type", "Split"}, {"pattern", {{"String", text}}}, {"behavior", "Removed"}};
}

/// The tokens as tokenizer.json has them, behind `vocab_size` others.
json written(const std::vector<AddedToken>& added, size_t vocab_size) {
  json list = json::array();
  for (const AddedToken& token : added)
    list.push_back({{"id", vocab_size + list.size()},
                    {"content", token.content},
                    {"special", token.special},
                    {"normalized", token.normalized},
                    {"single_word", token.single_word},
                    {"lstrip", token.lstrip},
                    {"rstrip", token.rstrip}});
  return list;
}

/// A byte-level BPE whose merges join whatever two of a few bytes stand next to each other, so that each cut at a wrong
/// place shows.
std::unique_ptr<Tokenizer> eager(const Rules& rules) {
  json vocab, merges = json::array();
  for (int byte = 0; byte < 256; ++byte) vocab[to_byte_level(std::string(1, static_cast<char>(byte)))] = byte;
  const std::string bytes = " \n\rabA1!'\xD0\xB0\xE3\x80\xCC\x81";
  for (const char left : bytes)
    for (const char right : bytes) {
      const std::string a = to_byte_level(std::string(1, left)), b = to_byte_level(std::string(1, right));
      vocab[a + b] = 256 + merges.size();
      merges.push_back({a, b});
    }
  json steps = rules.steps;
  steps.push_back({{"type", "ByteLevel"}, {"add_prefix_space", rules.add_prefix_space}, {"use_regex", false}});
  const json whole{{"normalizer", rules.normalizer},
                   {"added_tokens", written(rules.added, vocab.size())},
                   {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", steps}}},
                   {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}}}};
  return read_hugging_face(whole.dump(), "tokenizer.json", {.in_text = SpecialTokensAre::Parsed});
}

std::string mixed_text(std::mt19937& random) {
  const std::vector<std::string> parts{" ",      " ",      "\n",      "\r",     "\t",     "\u3000", "\u00A0", "a",
                                       "b",      "A",      "1",       "12",     "!",      "'s",     "/",      "\u0430",
                                       "\u0430", "\u5B57", "\u0301",  "\u2581", "\u200B", "\u00A8", "\uAC00", "\u1161",
                                       "\u037A", "the",    "word",    "<w>",    "<w>",    " <w> ",  "<w>\n",  "<w",
                                       "w>",     "a b",    "e\u0301", "\u00e9"};
  std::string text;
  for (size_t i = random() % 24; i > 0; --i) text += parts[random() % parts.size()];
  return text;
}

/// Cuts random texts at every place that is said to be a border, and tells how many that were.
int borders_in_mixed_texts(const Tokenizer& tokenizer, int texts) {
  std::mt19937 random(3);
  int borders = 0;
  for (int round = 0; round < texts; ++round) {
    const std::string text = mixed_text(random);
    const auto whole = tokenizer.encode(text);
    for (size_t at = 1; at < text.size(); ++at) {
      if ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80 || !tokenizer.is_border(text, at)) continue;
      ++borders;
      auto ids = tokenizer.encode(text.substr(0, at));
      const auto rest = tokenizer.encode_after(text.substr(0, at), std::string_view(text).substr(at));
      ids.insert(ids.end(), rest.begin(), rest.end());
      CAPTURE(text, at);
      REQUIRE(ids == whole);
    }
  }
  return borders;
}

/// One that has the flags, and others that begin, end or stand within what it may take in.
std::vector<AddedToken> tokens_with(AddedToken flags) {
  std::vector<AddedToken> tokens;
  for (const char* content : {"<w>", "a b", "\u00e9", "\u0430\n", "word", " 1"}) {
    flags.content = content;
    tokens.push_back(flags);
  }
  return tokens;
}

}  // namespace

TEST_CASE("borders: a text that is cut at any of them has the ids of the whole", "[tokenizer]") {
  const json digits{{"type", "Digits"}, {"individual_digits", true}};
  const Rules rules =
      GENERATE_COPY(values<Rules>({{"GPT-2", {split(kGpt2Pattern)}},
                                   {"Llama 3", {split(kLlama3Pattern)}},
                                   {"Qwen2, NFC", {split(kQwen2Pattern)}, false, {{"type", "NFC"}}},
                                   {"NFKC and a space in front", {split(kGpt2Pattern)}, true, {{"type", "NFKC"}}},
                                   {"NFD", {split(kLlama3Pattern)}, false, {{"type", "NFD"}}},
                                   {"digits before GPT-2", {digits, split(kGpt2Pattern)}},
                                   {"digits, with a space in front", {digits, split(kGpt2Pattern)}, true},
                                   {"digits in threes behind Llama 3", {split(kLlama3Pattern), split(R"(\p{N}{1,3})")}},
                                   {"a text taken out before", {literal("a"), split(kLlama3Pattern)}}}));
  INFO(rules.name);
  CHECK(borders_in_mixed_texts(*eager(rules), 3000) > 500);
}

TEST_CASE("borders: no added token is cut, nor what its flags take in, nor what is beside it", "[tokenizer]") {
  const AddedToken flags = GENERATE(values<AddedToken>({{.special = true},
                                                        {.normalized = true},
                                                        {.single_word = true},
                                                        {.lstrip = true},
                                                        {.rstrip = true},
                                                        {.normalized = true, .lstrip = true, .rstrip = true},
                                                        {.normalized = true, .single_word = true, .rstrip = true}}));
  const json digits{{"type", "Digits"}, {"individual_digits", true}};
  Rules rules =
      GENERATE_COPY(values<Rules>({{"GPT-2", {split(kGpt2Pattern)}},
                                   {"a space in front", {split(kGpt2Pattern)}, true},
                                   {"Qwen2, NFC", {split(kQwen2Pattern)}, false, {{"type", "NFC"}}},
                                   {"NFKC and spaces", {digits, split(kLlama3Pattern)}, true, {{"type", "NFKC"}}},
                                   {"a text taken out", {literal("b"), split(kLlama3Pattern)}}}));
  rules.added = tokens_with(flags);
  INFO(rules.name << ", special " << flags.special << ", normalized " << flags.normalized << ", single_word "
                  << flags.single_word << ", lstrip " << flags.lstrip << ", rstrip " << flags.rstrip);
  CHECK(borders_in_mixed_texts(*eager(rules), 1000) > 100);
}

TEST_CASE("borders: one that an added token touches is none, and one a word away is", "[tokenizer]") {
  const auto tokenizer =
      eager({"", {split(kGpt2Pattern)}, false, {}, {{.content = "<w>"}, {.content = "b c", .normalized = true}}});
  const auto borders_of = [&](const std::string& text) {
    std::vector<size_t> borders;
    for (size_t at = 1; at < text.size(); ++at)
      if (tokenizer->is_border(text, at)) borders.push_back(at);
    return borders;
  };
  using Borders = std::vector<size_t>;
  CHECK(borders_of("one two") == Borders{3});
  CHECK(borders_of("one <w> two") == Borders{});
  CHECK(borders_of("one a<w>a two\nx") == Borders{3, 9, 14});
  CHECK(borders_of("one\n<w>\ntwo").empty());
  CHECK(borders_of("a b c d").empty());
  CHECK(borders_of("a b d") == Borders{1, 3});
}

TEST_CASE("borders: of the bytes are none in an end of text that is parsed", "[tokenizer]") {
  const std::string text = "a<|endoftext|>b";
  const auto as_text = load_tokenizer("bytes"), parsed = load_tokenizer("bytes", SpecialTokensAre::Parsed);
  for (size_t at = 1; at < text.size(); ++at) {
    CHECK(as_text->is_border(text, at));
    CHECK_FALSE(parsed->is_border(text, at));
  }
  CHECK(parsed->is_border("ab<|endoftext|>", 1));
}

TEST_CASE("borders: a text that is no UTF-8 may be asked for, too", "[tokenizer]") {
  const auto tokenizer =
      eager({"", {split(kQwen2Pattern)}, false, {{"type", "NFC"}}, {{.content = "<w>", .normalized = true}}});
  const std::string text = "a b \xE5";
  CHECK_FALSE(tokenizer->is_border(text, 1));
  CHECK(tokenizer->is_border("a b c", 1));
}

TEST_CASE("borders: what is not proven has none", "[tokenizer]") {
  const Rules rules = GENERATE_COPY(values<Rules>({{"no pattern", {}},
                                                   {"lines", {split(R"([^\n]+\n)")}},
                                                   {"matches without length", {split(R"((?<=[a-z])(?=[A-Z]))")}},
                                                   {"letters", {split(R"(\p{L}+)")}},
                                                   {"a text with a space", {literal("a b"), split(kGpt2Pattern)}}}));
  INFO(rules.name);
  CHECK(borders_in_mixed_texts(*eager(rules), 300) == 0);
}

TEST_CASE("borders: of published tokenizers, each proves the ids of the whole", "[tokenizer]") {
  CHECK(borders_in_mixed_texts(*load_tokenizer("bytes"), 100) > 500);
  if (test::test_data().empty()) return test::skip("no reference data");
  const std::string name = GENERATE("qwen2", "llama3", "llama2", "t5", "torchtitan");
  CAPTURE(name);
  CHECK(borders_in_mixed_texts(*load_tokenizer(test::test_data() / (name + "_tokenizer")), 3000) > 500);
}

TEST_CASE("borders: SentencePiece's are none beside added tokens", "[tokenizer]") {
  if (test::test_data().empty()) return test::skip("no reference data");
  const auto [file, is_legacy] = GENERATE(table<std::string, bool>({{"llama2_tokenizer/tokenizer.model", false},
                                                                    {"llama2_tokenizer/tokenizer.model", true},
                                                                    {"t5_tokenizer/spiece.model", false}}));
  const AddedToken flags =
      GENERATE(values<AddedToken>({{.special = true}, {.lstrip = true}, {.rstrip = true}, {.single_word = true}}));
  CAPTURE(file, is_legacy, flags.special, flags.lstrip, flags.rstrip);
  SpecialTokens special{.legacy = is_legacy, .in_text = SpecialTokensAre::Parsed};
  for (const AddedToken& token : tokens_with(flags))
    special.added.emplace(40'000 + static_cast<int32_t>(special.added.size()), token);
  const std::string content = read_file(test::test_data() / file);
  CHECK(borders_in_mixed_texts(*read_sentencepiece(content, file, special), 1000) > 100);
}

}  // namespace trainyard::tokenizer
