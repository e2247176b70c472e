#include "tokenizer/text/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/error.h"

namespace trainyard::tokenizer {
namespace {

bool is_between(unsigned char byte, unsigned low, unsigned high) {
  return byte >= low && byte <= high;
}

/// Bytes of the well-formed sequence at the front of `text`; 0 where there is none.
size_t well_formed_length(std::string_view text) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : static_cast<unsigned char>(0);
  };
  const auto is_tail = [&](size_t i) { return is_between(byte(i), 0x80, 0xBF); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  if (is_between(lead, 0xC2, 0xDF)) return is_tail(1) ? 2 : 0;
  if (is_between(lead, 0xE0, 0xEF)) {
    const unsigned low = lead == 0xE0 ? 0xA0 : 0x80, high = lead == 0xED ? 0x9F : 0xBF;  // overlong; surrogates
    return is_between(byte(1), low, high) && is_tail(2) ? 3 : 0;
  }
  if (is_between(lead, 0xF0, 0xF4)) {
    const unsigned low = lead == 0xF0 ? 0x90 : 0x80, high = lead == 0xF4 ? 0x8F : 0xBF;  // overlong; above U+10FFFF
    return is_between(byte(1), low, high) && is_tail(2) && is_tail(3) ? 4 : 0;
  }
  return 0;
}

/// Bytes at the front of `text`, which is no well-formed sequence, that could begin one; 1 where the first cannot.
size_t begun_length(std::string_view text) {
  size_t begun = 1;
  // The rest of a sequence may be any tail but for its second byte, which both ends of the range stand for.
  for (size_t length = 1; length < std::min<size_t>(4, text.size() + 1); ++length)
    for (const char tail : {'\x80', '\xBF'})
      for (size_t missing = 1; length + missing <= 4; ++missing) {
        const std::string whole = std::string(text.substr(0, length)) + std::string(missing, tail);
        if (well_formed_length(whole) == whole.size()) begun = length;
      }
  return begun;
}

}  // namespace

std::optional<size_t> find_invalid_utf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    uint64_t eight = 0;
    while (at + sizeof(eight) <= text.size()) {  // ASCII, eight bytes at a time
      std::memcpy(&eight, text.data() + at, sizeof(eight));
      if (eight & 0x8080808080808080U) break;
      at += sizeof(eight);
    }
    if (at == text.size()) break;
    const size_t length = well_formed_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

void require_utf8(std::string_view text, std::string_view where, size_t offset) {
  if (const auto bad = find_invalid_utf8(text))
    throw InputError(fmt::format("{}: no UTF-8 at byte {} (0x{:02x}); convert it, for example with iconv -t UTF-8",
                                 where, offset + *bad, static_cast<unsigned char>(text[*bad])));
}

char32_t decode_utf8(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[at + i])); };
  switch (utf8_length(static_cast<unsigned char>(text[at]))) {
    case 1:
      return byte(0);
    case 2:
      return (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F);
    case 3:
      return (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    default:
      return (byte(0) & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
  }
}

void append_utf8(std::string& text, char32_t character) {
  const auto tail = [&](int shift) { text += static_cast<char>(0x80 | ((character >> shift) & 0x3F)); };
  if (character < 0x80) {
    text += static_cast<char>(character);
  } else if (character < 0x800) {
    text += static_cast<char>(0xC0 | (character >> 6));
    tail(0);
  } else if (character < 0x10000) {
    text += static_cast<char>(0xE0 | (character >> 12));
    tail(6), tail(0);
  } else {
    text += static_cast<char>(0xF0 | (character >> 18));
    tail(12), tail(6), tail(0);
  }
}

std::string printable(std::string_view text) {
  std::string shown;
  while (const auto wrong = find_invalid_utf8(text)) {
    shown.append(text.substr(0, *wrong)).append("\xEF\xBF\xBD");
    text.remove_prefix(*wrong);
    text.remove_prefix(begun_length(text));
  }
  return shown.append(text);
}

size_t unfinished_bytes(std::string_view text) {
  for (size_t back = std::min<size_t>(3, text.size()); back > 0; --back) {
    const std::string_view end = text.substr(text.size() - back);
    const bool begins = static_cast<unsigned char>(end[0]) >= 0xC2 && static_cast<unsigned char>(end[0]) <= 0xF4;
    if (begins && well_formed_length(end) == 0 && begun_length(end) == back) return back;
  }
  return 0;
}

}  // namespace trainyard::tokenizer
