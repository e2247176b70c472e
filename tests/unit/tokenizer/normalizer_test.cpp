#include <catch2/catch.hpp>

#include <sentencepiece_processor.h>
#include <utf8proc.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <random>

#include "base/files.h"
#include "support/support.h"
#include "tokenizer/files/sentencepiece_model.h"
#include "tokenizer/text/normalizer.h"
#include "tokenizer/text/sentencepiece_normalizer.h"
#include "tokenizer/text/utf8.h"

namespace trainyard::tokenizer {
namespace {

/// The library shows a text as its normaliser leaves it only in the pieces that it makes of it.
std::string by_library(const sentencepiece::SentencePieceProcessor& model, const std::string& text) {
  std::vector<std::string> pieces;
  REQUIRE(model.Encode(text, &pieces).ok());
  std::string all;
  for (const std::string& piece : pieces) all += piece;
  return all;
}

/// Characters of many kinds: spaces, letters with and without marks, wide forms, signs that become several, any other.
std::string random_text(std::mt19937& random) {
  static const std::vector<std::string> kKinds{
      " ",      "  ",     "\n",     "\t",     "a",      "The", "e\u0301", "\u00e9", "\u2581", "\ufb01",
      "\u00bd", "\u3000", "\uff21", "\u200b", "\u00a0", "...", "\u2026",  "'s",     "\u0301", "\u1ed9"};
  std::string text;
  for (int i = 0; i < 40; ++i) {
    if (random() % 4 != 0) {
      text += kKinds[random() % kKinds.size()];
      continue;
    }
    const auto any = static_cast<char32_t>(1 + random() % 0x30000);
    if (any < 0xD800 || any > 0xDFFF) append_utf8(text, any);
  }
  return text;
}

/// Marks in disorder, of classes that are alike and not, and letters that they join or that are made of several.
std::string random_marks(std::mt19937& random) {
  constexpr std::array kCharacters{U'a',      U'e',      U'\u0301', U'\u0327', U'\u0323', U'\u0345', U'\u0334',
                                   U'\u05B0', U'\u064B', U'\u0653', U'\u1EC7', U'\u0390', U'\uAC01', U'\u1100',
                                   U'\u1161', U'\u11A8', U'\uFB03', U'\uFDFA', U'\u0958', U'\U0001D15E'};
  std::string text;
  for (size_t i = 0; i < 30; ++i) append_utf8(text, kCharacters[random() % kCharacters.size()]);
  return text;
}

std::string by_utf8proc(const std::string& text, int options) {
  utf8proc_uint8_t* mapped = nullptr;
  const auto length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &mapped, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> held(mapped, &std::free);
  REQUIRE(length >= 0);
  return {reinterpret_cast<const char*>(mapped), static_cast<size_t>(length)};
}

}  // namespace

TEST_CASE("normalize: NFC, NFD, NFKC and NFKD are those of utf8proc's own mapping", "[tokenizer]") {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    const std::string text = random_marks(random) + random_text(random);
    CAPTURE(text);
    CHECK(normalize(text, {Normalization::Nfc}) == by_utf8proc(text, UTF8PROC_COMPOSE));
    CHECK(normalize(text, {Normalization::Nfd}) == by_utf8proc(text, UTF8PROC_DECOMPOSE));
    CHECK(normalize(text, {Normalization::Nfkc}) == by_utf8proc(text, UTF8PROC_COMPOSE | UTF8PROC_COMPAT));
    CHECK(normalize(text, {Normalization::Nfkd}) == by_utf8proc(text, UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT));
  }
}

TEST_CASE("normalize: a million marks in disorder take no longer than as many letters", "[tokenizer]") {
  constexpr size_t kOfEach = 333'333;  // by exchanging neighbours it would take an hour
  std::string text = "a", marks;
  for (size_t i = 0; i < kOfEach; ++i) text += "\u0301\u0327\u0323";
  for (size_t i = 0; i < kOfEach; ++i) marks += "\u0327";      // class 202
  for (size_t i = 0; i + 1 < kOfEach; ++i) marks += "\u0323";  // class 220: the first joins the letter
  for (size_t i = 0; i < kOfEach; ++i) marks += "\u0301";      // class 230
  CHECK((normalize(text, {Normalization::Nfc}) == "\u1EA1" + marks));  // in brackets: a failure would print it all
}

TEST_CASE("normalizer: leaves of a text what SentencePiece's own does, of a whole and of parts", "[tokenizer]") {
  if (test::test_data().empty()) return test::skip("no reference data");
  const std::string content = read_file(test::test_data() / "t5_tokenizer/spiece.model");
  sentencepiece::SentencePieceProcessor library;
  REQUIRE(library.LoadFromSerializedProto(content).ok());
  const SentencePieceNormalizer normalizer(parse_sentencepiece(content, "spiece.model"));
  std::mt19937 random(5);
  for (int round = 0; round < 2000; ++round) {
    const std::string text = random_text(random), more = random_text(random);
    CAPTURE(text);
    CHECK(normalizer.normalize(text, "") == by_library(library, text));
    for (const std::string space : {"\n", " "}) {  // the borders
      const bool is_line = space == "\n";
      const std::string before = text + "x" + (is_line ? space : ""), after = (is_line ? "" : space) + "y" + more;
      const std::string parts = normalizer.normalize(before, "") + normalizer.normalize(after, before);
      CHECK(parts == by_library(library, before + after));
    }
  }
  CHECK(normalizer.normalize(" \n ", "").empty());
}

}  // namespace trainyard::tokenizer
