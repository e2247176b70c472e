#include "tokenizer/text_stream.h"

#include <catch2/catch.hpp>

#include "support/support.h"
#include "tokenizer/text/utf8.h"

namespace trainyard::tokenizer {
namespace {

/// What is shown with each token, and then the rest.
std::vector<std::string> shown(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  TextStream stream(tokenizer);
  std::vector<std::string> parts;
  for (const int32_t id : ids) parts.push_back(stream.add(id));
  parts.push_back(stream.finish());
  return parts;
}

}  // namespace

TEST_CASE("text: what is no character is U+FFFD as Python writes it, bytes that one begins with are one", "[tokenizer]") {
  struct Row {
    const char *bytes, *text;
    size_t unfinished;
  };
  const Row rows[] = {{"a", "a", 0},
                      {"a\xE5\xAD", "a\uFFFD", 2},              // two of three
                      {"\xF0\x9F\x98", "\uFFFD", 3},            // three of four
                      {"\xF0\x9F\x98g", "\uFFFDg", 0},
                      {"\xC3", "\uFFFD", 1},
                      {"\xED\xA0", "\uFFFD\uFFFD", 0},           // no surrogate begins so
                      {"\xC0\xAF", "\uFFFD\uFFFD", 0},           // overlong
                      {"\xE5\xE5\xAD\x97", "\uFFFD\u5B57", 0},
                      {"\x80\x80", "\uFFFD\uFFFD", 0},
                      {"\xF4\x90", "\uFFFD\uFFFD", 0}};          // above U+10FFFF
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(printable(row.bytes) == row.text);
    CHECK(unfinished_bytes(row.bytes) == row.unfinished);
  }
}

TEST_CASE("text stream: a character of several tokens is shown with its last one", "[tokenizer]") {
  const auto bytes = load_tokenizer("bytes");
  CHECK(shown(*bytes, {'a', 0xE5, 0xAD, 0x97, 'b'}) == std::vector<std::string>{"a", "", "", "\u5B57", "b", ""});
}

TEST_CASE("text stream: what is left of a character in the end is U+FFFD, and what never was one", "[tokenizer]") {
  const auto bytes = load_tokenizer("bytes");
  CHECK(shown(*bytes, {'a', 0xE5, 0xAD}) == std::vector<std::string>{"a", "", "", "\uFFFD"});
  CHECK(shown(*bytes, {0xE5, 'a', 0xFF}) == std::vector<std::string>{"", "\uFFFDa", "\uFFFD", ""});
}

TEST_CASE("text stream: byte tokens of SentencePiece wait for one another, too", "[tokenizer]") {
  const auto path = test::test_data() / "llama2_tokenizer";
  if (!std::filesystem::exists(path)) return test::skip("no reference data");
  const auto llama = load_tokenizer(path);
  constexpr int32_t kFirstByte = 3;  // <0x00>
  const auto parts = shown(*llama, {kFirstByte + 0xF0, kFirstByte + 0x9F, kFirstByte + 0x98, kFirstByte + 0x80});
  CHECK(parts == std::vector<std::string>{"", "", "", "\U0001F600", ""});
  CHECK(shown(*llama, {kFirstByte + 0xF0, kFirstByte + 0x9F}).back() == "\uFFFD\uFFFD");  // one a byte, as transformers
}

}  // namespace trainyard::tokenizer
