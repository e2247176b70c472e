#include "chat/letters.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>

#include "tokenizer/text/characters.h"
#include "tokenizer/text/utf8.h"

namespace trainyard::chat {
namespace {

/// Whether a case of it has several letters, in Python, which takes Unicode's special casing.
bool has_special_casing(char32_t c) {
  return c == 0xDF || c == 0x130 || c == 0x149 || c == 0x1F0 || c == 0x390 || c == 0x3B0 || c == 0x587 ||
         (c >= 0x1E96 && c <= 0x1E9E) || (c >= 0x1F50 && c <= 0x1FFC) || (c >= 0xFB00 && c <= 0xFB17);
}

enum class Case { Lower, Upper, Title };

void append_in_case(std::string& text, char32_t c, Case wanted, Rendering& rendering) {
  if (c < 0x80) {
    const bool changes = wanted == Case::Lower ? c >= 'A' && c <= 'Z' : c >= 'a' && c <= 'z';
    text += static_cast<char>(changes ? c ^ 0x20U : c);
    return;
  }
  if (has_special_casing(c) || (c == 0x3A3 && wanted == Case::Lower))
    rendering.refuse(fmt::format("another case of the letter U+{:04X}", static_cast<uint32_t>(c)));
  const auto code = static_cast<utf8proc_int32_t>(c);
  const utf8proc_int32_t made = wanted == Case::Lower   ? utf8proc_tolower(code)
                                : wanted == Case::Upper ? utf8proc_toupper(code)
                                                        : utf8proc_totitle(code);
  tokenizer::append_utf8(text, static_cast<char32_t>(made));
}

template <typename F>
void for_each_character(std::string_view text, const F& f) {
  for (size_t at = 0; at < text.size(); at += tokenizer::utf8_length(static_cast<unsigned char>(text[at])))
    f(tokenizer::decode_utf8(text, at));
}

utf8proc_category_t category_of(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool is_cased(char32_t c) {
  const auto category = category_of(c);
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL || category == UTF8PROC_CATEGORY_LT;
}

bool all_cased_are(std::string_view text, utf8proc_category_t wanted) {
  bool has_any = false, fits = true;
  for_each_character(text, [&](char32_t c) {
    if (!is_cased(c)) return;
    has_any = true;
    fits = fits && category_of(c) == wanted;
  });
  return has_any && fits;
}

std::string in_case(std::string_view text, Case wanted, Rendering& rendering) {
  rendering.make_text(text.size());
  std::string made;
  for_each_character(text, [&](char32_t c) { append_in_case(made, c, wanted, rendering); });
  return made;
}

}  // namespace

bool is_space(char32_t c) {
  return tokenizer::is_white_space(c) || (c >= 0x1C && c <= 0x1F);  // and the four separators of ASCII
}

bool is_printable(char32_t c) {
  if (c < 0x80) return c >= 32 && c < 127;
  switch (category_of(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

bool is_ascii_text(std::string_view text) {
  return std::ranges::all_of(text, tokenizer::is_ascii);
}

size_t length_of(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::vector<std::string> characters_of(std::string_view text) {
  std::vector<std::string> characters;
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = tokenizer::utf8_length(static_cast<unsigned char>(text[at]));
    characters.emplace_back(text.substr(at, bytes));
    at += bytes;
  }
  return characters;
}

std::string_view stripped(std::string_view text, Side side, const std::string_view* characters) {
  const auto goes = [&](std::string_view character) {
    if (!characters) return is_space(tokenizer::decode_utf8(character, 0));
    return characters->find(character) != std::string_view::npos;
  };
  while (side != Side::Right && !text.empty()) {
    const size_t bytes = tokenizer::utf8_length(static_cast<unsigned char>(text.front()));
    if (!goes(text.substr(0, bytes))) break;
    text.remove_prefix(bytes);
  }
  while (side != Side::Left && !text.empty()) {
    const size_t at = tokenizer::last_character(text);
    if (!goes(text.substr(at))) break;
    text = text.substr(0, at);
  }
  return text;
}

std::string upper(std::string_view text, Rendering& rendering) {
  return in_case(text, Case::Upper, rendering);
}

std::string lower(std::string_view text, Rendering& rendering) {
  return in_case(text, Case::Lower, rendering);
}

std::string capitalized(std::string_view text, Rendering& rendering) {
  rendering.make_text(text.size());
  std::string made;
  bool is_first = true;
  for_each_character(text, [&](char32_t c) {
    append_in_case(made, c, is_first ? Case::Title : Case::Lower, rendering);
    is_first = false;
  });
  return made;
}

std::string titled(std::string_view text, Rendering& rendering) {
  rendering.make_text(text.size());
  std::string made;
  bool is_in_word = false;
  for_each_character(text, [&](char32_t c) {
    append_in_case(made, c, is_in_word ? Case::Lower : Case::Title, rendering);
    is_in_word = is_cased(c);
  });
  return made;
}

bool is_lower(std::string_view text) {
  return all_cased_are(text, UTF8PROC_CATEGORY_LL);
}

bool is_upper(std::string_view text) {
  return all_cased_are(text, UTF8PROC_CATEGORY_LU);
}

std::string replaced_in(std::string_view text, std::string_view old, std::string_view by, int64_t most,
                        Rendering& rendering) {
  std::string made;
  size_t at = 0;
  const auto put = [&](std::string_view part) {
    if (made.size() + part.size() > made.capacity()) rendering.make_text(2 * (made.size() + part.size()));
    made += part;
  };
  for (int64_t done = 0; most < 0 || done < most; ++done) {
    const size_t found = text.find(old, at);
    if (found == std::string_view::npos) break;
    put(text.substr(at, found - at));
    put(by);
    at = found + old.size();
    if (!old.empty()) continue;
    if (at == text.size()) break;
    const size_t bytes = tokenizer::utf8_length(static_cast<unsigned char>(text[at]));
    put(text.substr(at, bytes));
    at += bytes;
  }
  put(text.substr(std::min(at, text.size())));
  return made;
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const char32_t c = tokenizer::decode_utf8(text, at);
    const size_t bytes = tokenizer::utf8_length(static_cast<unsigned char>(text[at]));
    const bool ends = (c >= 10 && c <= 13) || (c >= 28 && c <= 30) || c == 0x85 || c == 0x2028 || c == 0x2029;
    if (ends) lines.emplace_back(text.substr(begin, at - begin));
    at += bytes;
    if (c == '\r' && text.substr(at).starts_with('\n')) ++at;
    if (ends) begin = at;
  }
  if (begin < text.size()) lines.emplace_back(text.substr(begin));
  return lines;
}

}  // namespace trainyard::chat
