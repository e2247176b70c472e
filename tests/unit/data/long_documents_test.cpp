#include <fmt/format.h>

#include <array>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data/documents.h"
#include "support/support.h"
#include "tokenizer/files/readers.h"
#include "tokenizer/fingerprint.h"
#include "tokenizer/text/byte_level.h"
#include "tokenizer/text/splitter.h"
#include "unit/data/corpora.h"

namespace trainyard::data {
namespace {

/// A byte-level BPE that splits by `regex`, and joins two bytes of "a" and the space, and of a Cyrillic letter.
std::unique_ptr<tokenizer::Tokenizer> pairs_tokenizer(const std::string& regex, bool add_prefix_space,
                                                      const nlohmann::json& added = nlohmann::json::array()) {
  nlohmann::json vocab, merges = nlohmann::json::array();
  for (int byte = 0; byte < 256; ++byte)
    vocab[tokenizer::to_byte_level(std::string(1, static_cast<char>(byte)))] = byte;
  const std::string letter = "\u0430";
  const std::vector<std::pair<std::string, std::string>> pairs{{letter.substr(0, 1), letter.substr(1)},
                                                               {letter, letter},
                                                               {letter + letter, letter + letter},
                                                               {"a", " "},
                                                               {"a ", "a"}};
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

TEST_CASE("part_length: parts make the text again and give the tokens of the whole", "[data]") {
  if (test::test_data().empty()) return test::skip("no reference data");
  const std::string name = GENERATE("qwen2", "llama3", "torchtitan", "llama2");
  CAPTURE(name);
  const auto tokenizer = tokenizer::load_tokenizer(test::test_data() / (name + "_tokenizer"));
  std::string text = read_file(test::test_data() / "wikitext-2/wiki.test.txt").substr(0, 100'000);
  // Lines of no letter of ASCII; a line's end before a wide space, or before a sign that a pattern may take in, is
  // none.
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
  const std::string text =
      "\u20AC\u20AC|\u20AC|\u20AC\u20AC\u20AC\u20AC\u20AC|\u20AC\u20AC";  // borders at 6, 10 and 26 of 33
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

TEST_CASE("corpus: a long document has the ids of the whole, whatever its script and its tokenizer's pattern",
          "[data]") {
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

TEST_CASE(
    "corpus: a document that cannot be cut is refused beyond 64 MiB, with its place, its tokenizer and what helps",
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
  const auto [regex, word, is_former] =
      GENERATE(table<std::string, std::string, bool>({{tokenizer::kGpt2Pattern, "the word ", true},
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
    CHECK((open_corpus({.path = folder / "a.jsonl"}, *tokenizer).fingerprint() == former("text", "jsonl", line)) ==
          same);
  }
}

}  // namespace trainyard::data
