#include <catch2/catch.hpp>

#include <thread>

#include "base/error.h"
#include "support/support.h"
#include "tokenizer/text/byte_level.h"
#include "tokenizer/text/normalizer.h"
#include "tokenizer/text/splitter.h"
#include "tokenizer/text/utf8.h"
#include "tokenizer/tokenizer.h"

namespace trainyard::tokenizer {
namespace {

std::vector<std::string> pieces(const char* pattern, std::string_view text) {
  const Splitter splitter({{pattern}}, "test");
  Splitter::Scratch scratch;
  std::vector<std::string> out;
  splitter.split(text, scratch, [&](std::string_view piece) { out.emplace_back(piece); });
  return out;
}

using Pieces = std::vector<std::string>;

}  // namespace

TEST_CASE("utf8: the first wrong byte is found, and well-formed text passes", "[tokenizer]") {
  const auto [text, bad] = GENERATE(table<std::string, std::optional<size_t>>({
      {"", std::nullopt},
      {"plain ASCII, longer than eight bytes", std::nullopt},
      {"\xC2\x80\xDF\xBF\xE0\xA0\x80\xED\x9F\xBF\xEF\xBF\xBF\xF0\x90\x80\x80\xF4\x8F\xBF\xBF", std::nullopt},
      {"12345678\x80", 8},  // a tail without a lead
      {"ab\xC3", 2},        // cut off
      {"ab\xE2\x82", 2},
      {"ab\xF0\x9F\x98", 2},
      {"\xC0\x80", 0},  // longer than need be
      {"\xC1\xBF", 0},
      {"\xE0\x9F\xBF", 0},
      {"\xF0\x8F\xBF\xBF", 0},
      {"\xED\xA0\x80", 0},      // a surrogate
      {"\xF4\x90\x80\x80", 0},  // above U+10FFFF
      {"\xF5\x80\x80\x80", 0},
      {"ok\xE2\x82\xACok\xFF", 7},
  }));
  INFO(text);
  CHECK(find_invalid_utf8(text) == bad);
}

TEST_CASE("utf8: encode refuses bytes that are none, by offset, and the kind bytes takes all", "[tokenizer]") {
  const auto bytes = load_tokenizer("bytes");
  CHECK(bytes->encode("\xFF"
                      "a") == std::vector<int32_t>{255, 97});
  CHECK(bytes->decode(std::vector<int32_t>{104, 105, 256}) == "hi<|endoftext|>");
  CHECK(bytes->eos_id() == 256);
  CHECK_THROWS_WITH(bytes->decode(std::vector<int32_t>{1, 257}), Catch::Contains("id 257 at position 1"));
  if (test::test_data().empty()) return test::skip("no reference data");
  for (const char* const name : {"qwen2", "llama3", "llama2", "t5", "torchtitan"}) {
    const auto tokenizer = load_tokenizer(test::test_data() / (std::string(name) + "_tokenizer"));
    INFO(name);
    CHECK_THROWS_WITH(tokenizer->encode("abc\xFF"), Catch::Contains("no UTF-8 at byte 3 (0xff)"));
    const auto beyond = static_cast<int32_t>(tokenizer->vocab_size());
    CHECK_THROWS_AS(tokenizer->decode(std::vector<int32_t>{beyond}), InputError);
    CHECK_THROWS_AS(tokenizer->decode(std::vector<int32_t>{-1}), InputError);
    CHECK(tokenizer->encode("").empty());
    CHECK(tokenizer->decode({}).empty());
  }
}

TEST_CASE("byte level: every byte is one character and comes back", "[tokenizer]") {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  CHECK(from_byte_level(to_byte_level(all)) == all);
  CHECK(to_byte_level(" A\n") ==
        "\xC4\xA0"
        "A\xC4\x8A");
  CHECK_FALSE(from_byte_level(" "));
  CHECK_FALSE(from_byte_level("\xE2\x96\x81"));
}

TEST_CASE("splitter: digits, contractions and white space fall as the published patterns say", "[tokenizer]") {
  CHECK(pieces(kLlama3Pattern, "12345") == Pieces{"123", "45"});
  CHECK(pieces(kQwen2Pattern, "123") == Pieces{"1", "2", "3"});
  CHECK(pieces(kGpt2Pattern, "12345") == Pieces{"12345"});
  CHECK(pieces(kLlama3Pattern, "he'stop HE'S") == Pieces{"he", "'s", "top", " HE", "'S"});
  CHECK(pieces(kLlama3Pattern, "it'\xC5\xBF") == Pieces{"it", "'\xC5\xBF"});  // U+017F, a form of s
  CHECK(pieces(kLlama3Pattern, "a   b") == Pieces{"a", "  ", " b"});
  CHECK(pieces(kLlama3Pattern,
               "a\xE1\xA0\x8E"
               "b") == Pieces{"a",
                              "\xE1\xA0\x8E"
                              "b"});  // U+180E is no white space
  CHECK(pieces(kLlama3Pattern, "a\xE3\x80\x80\xC2\xA0") ==
        Pieces{"a", "\xE3\x80\x80\xC2\xA0"});  // U+3000 and U+00A0 are
  CHECK(pieces(kLlama3Pattern, "!\n\n x") == Pieces{"!\n\n", " x"});
}

TEST_CASE("splitter: nothing is lost, whatever the pattern leaves out", "[tokenizer]") {
  CHECK(pieces("b", "abcb") == Pieces{"a", "b", "c", "b"});
  CHECK(pieces("x*", "abx") == Pieces{"ab", "x"});  // an empty match is none
  CHECK(pieces(R"(a\Kb)", "ab") == Pieces{"a", "b"});
  CHECK(pieces("z", "").empty());
  CHECK_THROWS_AS(pieces("(", ""), InputError);
}

TEST_CASE("splitter: a pattern that explodes is an error, not a hang", "[tokenizer]") {
  CHECK_THROWS_WITH(pieces("(a+)+$", std::string(4000, 'a') + "!"), Catch::Contains("gives up at byte 0"));
}

TEST_CASE("normalize: canonical forms, with marks that join the ASCII letter before them", "[tokenizer]") {
  CHECK(normalize("cafe\xCC\x81!", {Normalization::Nfc}) == "caf\xC3\xA9!");
  CHECK(normalize("caf\xC3\xA9", {Normalization::Nfd}) == "cafe\xCC\x81");
  CHECK(normalize("e\xCC\x81"
                  "e\xCC\x81",
                  {Normalization::Nfc}) == "\xC3\xA9\xC3\xA9");
  CHECK(normalize("\xCC\x81"
                  "a",
                  {Normalization::Nfc}) ==
        "\xCC\x81"
        "a");
  CHECK(normalize(std::string("a\0b", 3), {Normalization::Nfc}) == std::string("a\0b", 3));
  CHECK(normalize("\xEF\xAC\x81", {Normalization::Nfkc}) == "fi");
  CHECK(normalize("\xEF\xAC\x81", {Normalization::Nfc}) == "\xEF\xAC\x81");
}

TEST_CASE("threads: many encode with one tokenizer at once and agree", "[tokenizer]") {
  if (test::test_data().empty()) return test::skip("no reference data");
  const std::string name = GENERATE("llama3", "t5", "llama2");
  const auto tokenizer = load_tokenizer(test::test_data() / (name + "_tokenizer"));
  std::string text;
  for (int i = 0; i < 500; ++i) text += "word" + std::to_string(i * 7919) + (i % 7 == 0 ? ".\n" : " ");
  const auto expected = tokenizer->encode(text);
  std::vector<std::vector<int32_t>> seen(4);
  {
    std::vector<std::jthread> threads;
    for (auto& ids : seen) threads.emplace_back([&] { ids = tokenizer->encode(text); });
  }
  for (const auto& ids : seen) CHECK((ids == expected));
}

}  // namespace trainyard::tokenizer
