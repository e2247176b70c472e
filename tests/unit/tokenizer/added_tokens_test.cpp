#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/files.h"
#include "support/support.h"
#include "tokenizer/files/readers.h"
#include "tokenizer/fingerprint.h"
#include "tokenizer/text/added_tokens.h"
#include "tokenizer/tokenizer.h"

namespace trainyard::tokenizer {
namespace {

using Ids = std::vector<int32_t>;

const std::map<int32_t, AddedToken> kTokens{
    {1, {.content = "<w>"}},
    {2, {.content = "New York", .normalized = true}},
    {3, {.content = "cat", .single_word = true}},
    {4, {.content = "<s>", .lstrip = true, .rstrip = true}},
    {5, {.content = "<|im|>", .special = true}},
    {6, {.content = "\u00e9\u00e9", .normalized = true}},
};

/// The parts of a text: tokens by their number, what lies between by itself; neighbours of text are one.
std::vector<std::string> parts_of(const AddedTokens& tokens, std::string_view text) {
  std::vector<std::string> parts;
  bool is_after_text = false;
  tokens.split(text, [&](std::string_view part, std::optional<int32_t> token) {
    if (!token && is_after_text)
      parts.back() += part;
    else
      parts.push_back(token ? fmt::format("#{}", *token) : std::string(part));
    is_after_text = !token;
  });
  return parts;
}

std::vector<std::string> parts_of_both(const AddedTokens& tokens, std::string_view text, size_t cut) {
  std::vector<std::string> parts = parts_of(tokens, text.substr(0, cut));
  const std::vector<std::string> behind = parts_of(tokens, text.substr(cut));
  const bool is_text =
      !parts.empty() && !behind.empty() && !parts.back().starts_with('#') && !behind[0].starts_with('#');
  if (is_text) parts.back() += behind[0];
  parts.insert(parts.end(), behind.begin() + (is_text ? 1 : 0), behind.end());
  return parts;
}

}  // namespace

TEST_CASE("added tokens: a cut that is called safe changes no token, and places far from tokens are safe",
          "[tokenizer]") {
  const auto forms = GENERATE(std::vector<Normalization>{}, std::vector{Normalization::Nfc});
  const AddedTokens tokens(kTokens, forms, SpecialTokensAre::Parsed);
  int safe = 0;
  for (const std::string text :
       {"in New York, a cat sat <s>  there <|im|>", "concat cat <w><w> a<s>b  <s>", "no token anywhere here", "<w",
        "e\u0301\u00e9e\u0301x New  York", "<s>   <s>cat\u00e9\u00e9 <|im|"}) {
    const std::vector<std::string> whole = parts_of(tokens, text);
    for (size_t cut = 1; cut < text.size(); ++cut) {
      const bool is_in_character = (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80;
      const bool is_of_character_before = static_cast<unsigned char>(text[cut]) == 0xCC;  // a combining mark
      if (is_in_character || is_of_character_before || !tokens.is_safe_cut(text, cut)) continue;
      INFO(text << " at " << cut);
      CHECK(parts_of_both(tokens, text, cut) == whole);
      ++safe;
    }
  }
  CHECK(safe > (forms.empty() ? 40 : 25));  // with normal forms no place near a token of the text as it is
  CHECK_FALSE(tokens.is_safe_cut("in New York, a", 6));
  CHECK_FALSE(tokens.is_safe_cut("in <s>  a", 7));
  CHECK_FALSE(tokens.is_safe_cut("a cat", 2));
}

TEST_CASE("added tokens: what a text has of them is told by kind, and nothing is sought that is not found",
          "[tokenizer]") {
  const AddedTokens as_text(kTokens, {}, SpecialTokensAre::Text), parsed(kTokens, {}, SpecialTokensAre::Parsed);
  CHECK(as_text.sought() == Added::Words);
  CHECK(parsed.sought() == Added::Special);
  CHECK(as_text.found_in("a <|im|> concat") == Added::None);
  CHECK(as_text.found_in("a <|im|> cat") == Added::Words);
  CHECK(parsed.found_in("a cat") == Added::Words);
  CHECK(parsed.found_in("a cat<|im|>") == Added::Special);
  const AddedTokens special({{5, {.content = "<|im|>", .special = true}}}, {}, SpecialTokensAre::Text);
  CHECK(special.is_idle());
  CHECK(special.sought() == Added::None);
}

TEST_CASE("added tokens: the bytes have their end of text, which is text unless it is to be parsed", "[tokenizer]") {
  CHECK(load_tokenizer("bytes")->encode("<|endoftext|>").size() == 13);
  CHECK(load_tokenizer("bytes", SpecialTokensAre::Parsed)->encode("a<|endoftext|>") == Ids{97, 256});
}

TEST_CASE("added tokens: SentencePiece keeps a space alone behind one", "[tokenizer]") {
  if (test::test_data().empty()) return test::skip("no reference data");
  const std::string content = read_file(test::test_data() / "llama2_tokenizer/tokenizer.model");
  SpecialTokens special{.legacy = GENERATE(false, true)};
  special.added = {{32000, AddedToken{.content = "<x>"}}, {32001, AddedToken{.content = "<y>"}}};
  const auto tokenizer = read_sentencepiece(content, "tokenizer.model", special);
  // The ids of transformers 5.17.
  CHECK(tokenizer->encode("<x> <x>") == Ids{32000, 29871, 32000});
  CHECK(tokenizer->encode("<x>  <x>") == Ids{32000, 259, 32000});
  CHECK(tokenizer->encode("a<x> ") == Ids{263, 32000, 29871});
  CHECK(tokenizer->encode("a <x> <y> b") == Ids{263, 29871, 32000, 29871, 32001, 289});
}

TEST_CASE("special tokens: an eos_token that is in no vocabulary is an error", "[tokenizer]") {
  const test::TemporaryFolder folder;
  const std::string level = R"({"type": "ByteLevel", "add_prefix_space": false})";
  write_file_atomically(
      folder / "tokenizer.json",
      R"({"pre_tokenizer": )" + level + R"(, "model": {"type": "BPE", "vocab": {"a": 0, "</s>": 1}, "merges": []}})");
  const auto load_with = [&](const std::string& eos) {
    write_file_atomically(folder / "tokenizer_config.json", R"({"eos_token": )" + eos + "}");
    return load_tokenizer(folder.path())->eos_id();
  };
  CHECK(load_with(R"("</s>")") == 1);
  CHECK(load_with("null") == 1);
  for (const char* eos : {R"("<end>")", R"({"content": "<end>"})"})
    CHECK_THROWS_WITH(load_with(eos),
                      Catch::Contains("tokenizer_config.json: eos_token is '<end>', which no vocabulary"));
  CHECK_THROWS_WITH(load_with(R"("<|im_end|>")"), Catch::Contains("eos_token is '<|im_end|>', which no vocabulary"));
}

TEST_CASE("vocab.json: tokens that end words by a sign are named and not taken for byte-level ones", "[tokenizer]") {
  const NamedContent vocab{R"({"a": 0, "a</w>": 1, "b": 2})", "vocab.json"},
      merges{"#version: 0.2\nb a</w>\n", "merges.txt"};
  CHECK_THROWS_WITH(read_vocab_and_merges(vocab, merges, {}),
                    Catch::Contains("vocab.json: the token 'a</w>' ends a word"));
}

TEST_CASE("unk_token: where it is in no vocabulary, a byte without a token is an error", "[tokenizer]") {
  const auto tokenizer = read_hugging_face(
      R"({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
          "model": {"type": "BPE", "unk_token": "<unk>", "vocab": {"a": 0}, "merges": []}})",
      "tokenizer.json", {});
  CHECK(tokenizer->encode("aa") == Ids{0, 0});
  CHECK_THROWS_WITH(tokenizer->encode("ab"),
                    Catch::Contains("the byte 0x62, which has no token, and unk_token '<unk>'"));
}

TEST_CASE("fingerprints: rules that do not act leave them as they were", "[tokenizer]") {
  const auto is_as_it_was = [](const std::string& pre, const std::string& added, SpecialTokens special = {}) {
    const std::string content = R"({"added_tokens": )" + added + R"(, "pre_tokenizer": )" + pre +
                                R"(, "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}})";
    const std::string as_it_was = Fingerprint().add("hugging-face 1").add(content).add(special.content).hex();
    return read_hugging_face(content, "tokenizer.json", std::move(special))->fingerprint() == as_it_was;
  };
  const std::string level = R"({"type": "ByteLevel", "add_prefix_space": true})",
                    digits = R"({"type": "Sequence", "pretokenizers": [{"type": "Digits"}, )" + level + "]}",
                    word = R"([{"id": 2, "content": "<w>"}])", gap = R"([{"id": 9, "content": "<w>"}])";
  CHECK(is_as_it_was(level, word));
  CHECK_FALSE(is_as_it_was(digits, "[]"));
  CHECK_FALSE(is_as_it_was(level, gap));
  SpecialTokens gpt2;
  gpt2.has_config = true;
  gpt2.tokenizer_class = "GPT2Tokenizer";
  gpt2.add_prefix_space = true;
  CHECK(is_as_it_was(level, word, gpt2));
  CHECK_FALSE(is_as_it_was(digits, word, gpt2));
  gpt2.add_prefix_space = false;
  CHECK_FALSE(is_as_it_was(level, word, gpt2));
  const AddedToken special{.content = "<w>", .special = true};
  SpecialTokens with_role;
  with_role.named = {{"<w>", special}};
  with_role.read_by_transformers.roles = {{"<w>", {.token = special}}};
  CHECK(is_as_it_was(level, word, with_role));
  SpecialTokens of_list;
  of_list.named = {{"<w>", special}};
  of_list.read_by_transformers.extra = {{"<w>", special}};
  CHECK_FALSE(is_as_it_was(level, word, of_list));  // it was text, and is found
}

}  // namespace trainyard::tokenizer
