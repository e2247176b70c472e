#include "tokenizer/text/borders.h"

#include "tokenizer/text/characters.h"
#include "tokenizer/text/utf8.h"

namespace trainyard::tokenizer {
namespace {

/// Whether a character that is no white space begins at `at`. What is no character, as a part of one at the end, is none.
bool is_word_from(std::string_view text, size_t at) {
  if (at >= text.size()) return false;
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead >= 0x80 && (lead < 0xC0 || at + utf8_length(lead) > text.size())) return false;
  return !is_white_space(decode_utf8(text, at));
}

/// Whether a character that is no white space ends at `at`.
bool is_word_upto(std::string_view text, size_t at) {
  if (at == 0) return false;
  size_t begin = at - 1;
  while (begin > 0 && at - begin < 4 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  const bool is_whole = begin + utf8_length(static_cast<unsigned char>(text[begin])) == at;
  return is_whole && is_word_from(text, begin);
}

}  // namespace

bool is_between_words(std::string_view text, size_t at) {
  return at < text.size() && text[at] == ' ' && is_word_upto(text, at) && is_word_from(text, at + 1);
}

bool begins_line(std::string_view text, size_t at) {
  return at > 0 && text[at - 1] == '\n' && is_word_upto(text, at - 1) && is_word_from(text, at);
}

bool is_between_words_or_lines(std::string_view text, size_t at) {
  return is_between_words(text, at) || begins_line(text, at);
}

}  // namespace trainyard::tokenizer
