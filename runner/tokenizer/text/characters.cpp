#include "tokenizer/text/characters.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "tokenizer/text/utf8.h"

namespace trainyard::tokenizer {
namespace {

struct Range {
  char32_t first, last;
};

constexpr std::array kSpaces{Range{0x9, 0xD},       Range{0x20, 0x20},     Range{0x85, 0x85},     Range{0xA0, 0xA0},
                             Range{0x1680, 0x1680}, Range{0x2000, 0x200A}, Range{0x2028, 0x2029}, Range{0x202F, 0x202F},
                             Range{0x205F, 0x205F}, Range{0x3000, 0x3000}};

/// Characters of words that are neither letters nor marks nor digits: the joiners, and letters in circles and squares
/// (Other_Alphabetic).
constexpr std::array kWordSymbols{Range{0x200C, 0x200D}, Range{0x24B6, 0x24E9}, Range{0x1F130, 0x1F149},
                                  Range{0x1F150, 0x1F169}, Range{0x1F170, 0x1F189}};

bool is_in(const auto& ranges, char32_t character) {
  return std::ranges::any_of(ranges, [&](const Range& r) { return r.first <= character && character <= r.last; });
}

}  // namespace

size_t last_character(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && is_inside_character(text, at)) --at;
  return at;
}

bool is_white_space(char32_t character) {
  return is_in(kSpaces, character);
}

bool is_word_character(char32_t character) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(character))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return is_in(kWordSymbols, character);
  }
}

size_t white_space_at_front(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && is_white_space(decode_utf8(text, at)))
    at += utf8_length(static_cast<unsigned char>(text[at]));
  return at;
}

size_t white_space_at_back(std::string_view text) {
  size_t end = text.size();
  while (end > 0) {
    const size_t at = last_character(text.substr(0, end));
    if (!is_white_space(decode_utf8(text, at))) break;
    end = at;
  }
  return text.size() - end;
}

bool begins_with_word(std::string_view text) {
  return !text.empty() && is_word_character(decode_utf8(text, 0));
}

bool ends_with_word(std::string_view text) {
  return !text.empty() && is_word_character(decode_utf8(text, last_character(text)));
}

}  // namespace trainyard::tokenizer
