#include "tokenizer/text/normalizer.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <stdexcept>

#include "tokenizer/text/utf8.h"

namespace trainyard::tokenizer {
namespace {

utf8proc_option_t options_of(Normalization form) {
  switch (form) {
    case Normalization::Nfc:
      return static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    case Normalization::Nfd:
      return static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
    case Normalization::Nfkc:
      return static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
    case Normalization::Nfkd:
      return static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
  }
  throw std::invalid_argument("normalize: unknown form");
}

[[noreturn]] void fail(utf8proc_ssize_t error) {
  throw std::runtime_error(fmt::format("normalize: {}", utf8proc_errmsg(error)));
}

int combining_class_of(utf8proc_int32_t character) {
  return utf8proc_get_property(character)->combining_class;
}

/// Appends what `character` is made of.
void append_decomposed(std::vector<utf8proc_int32_t>& out, char32_t character, utf8proc_option_t options) {
  std::array<utf8proc_int32_t, 32> parts{};  // U+FDFA has 18
  int boundary = 0;
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(character), parts.data(), std::ssize(parts),
                                             options, &boundary);
  if (count < 0 || count > std::ssize(parts)) fail(count < 0 ? count : UTF8PROC_ERROR_OVERFLOW);
  out.insert(out.end(), parts.begin(), parts.begin() + count);
}

/// Puts each run of combining marks in the order of their classes. utf8proc_map() does it by exchanging neighbours,
/// whose time grows with the square of a run.
void put_marks_in_order(std::vector<utf8proc_int32_t>& characters) {
  const auto is_mark = [](utf8proc_int32_t character) { return combining_class_of(character) != 0; };
  for (auto begin = characters.begin(); begin != characters.end();) {
    begin = std::find_if(begin, characters.end(), is_mark);
    const auto end = std::find_if_not(begin, characters.end(), is_mark);
    if (end - begin > 1) std::ranges::stable_sort(begin, end, {}, combining_class_of);
    begin = end;
  }
}

void append_normalized(std::string& out, std::string_view text, utf8proc_option_t options) {
  std::vector<utf8proc_int32_t> characters;
  characters.reserve(text.size());
  for (size_t at = 0; at < text.size(); at += utf8_length(static_cast<unsigned char>(text[at])))
    append_decomposed(characters, decode_utf8(text, at), options);
  put_marks_in_order(characters);
  const auto length =
      utf8proc_normalize_utf32(characters.data(), static_cast<utf8proc_ssize_t>(characters.size()), options);
  if (length < 0) fail(length);
  characters.resize(static_cast<size_t>(length));
  for (const utf8proc_int32_t character : characters) append_utf8(out, static_cast<char32_t>(character));
}

/// ASCII characters are the same in every form and start a new combining sequence, so only runs of others, each with
/// the ASCII character before it (a letter that an accent may join), have to go through the tables.
std::string normalize_once(std::string_view text, Normalization form) {
  std::string out;
  out.reserve(text.size());
  size_t copied = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (is_ascii(text[at])) continue;
    const size_t begin = at > copied ? at - 1 : at;
    while (at < text.size() && !is_ascii(text[at])) ++at;
    out.append(text.substr(copied, begin - copied));
    append_normalized(out, text.substr(begin, at - begin), options_of(form));
    copied = at;
  }
  return out.append(text.substr(copied));
}

}  // namespace

std::string normalize(std::string_view text, const std::vector<Normalization>& forms) {
  std::string out(text);
  for (const Normalization form : forms) out = normalize_once(out, form);
  return out;
}

}  // namespace trainyard::tokenizer
