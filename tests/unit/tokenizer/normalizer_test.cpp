#include <catch2/catch.hpp>

#include <sentencepiece_processor.h>

#include <random>

#include "base/files.h"
#include "support/support.h"
#include "tokenizer/sentencepiece_model.h"
#include "tokenizer/sentencepiece_normalizer.h"
#include "tokenizer/utf8.h"

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

}  // namespace

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
    for (const std::string space : {"\n", " "}) {  // where part_length() cuts
      const bool is_line = space == "\n";
      const std::string before = text + "x" + (is_line ? space : ""), after = (is_line ? "" : space) + "y" + more;
      const std::string parts = normalizer.normalize(before, "") + normalizer.normalize(after, before);
      CHECK(parts == by_library(library, before + after));
    }
  }
  CHECK(normalizer.normalize(" \n ", "").empty());
}

}  // namespace trainyard::tokenizer
