#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace trainyard::tokenizer {

/// Offset of the first byte that begins no well-formed UTF-8 sequence (Unicode 15, table 3-7); none where all is well.
std::optional<size_t> find_invalid_utf8(std::string_view text);

/// Throws InputError: `where`, the offset and the byte. `offset` is what precedes `text` in what `where` names.
void require_utf8(std::string_view text, std::string_view where, size_t offset = 0);

/// `text` with U+FFFD in place of what is no character, for people's eyes: one for bytes that begin a well-formed sequence
/// and end too early, one for each other byte. So do the Unicode standard, Python and transformers.
std::string printable(std::string_view text);

/// Bytes at the end of `text` that begin a well-formed sequence whose rest is missing.
size_t unfinished_bytes(std::string_view text);

/// Bytes of the character that begins with `lead`, in well-formed text.
constexpr size_t utf8_length(unsigned char lead) {
  return lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

/// Whether the byte at `at` of well-formed text is one of a character that begins before it.
constexpr bool is_inside_character(std::string_view text, size_t at) {
  return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
}

constexpr bool is_ascii(char byte) {
  return static_cast<unsigned char>(byte) < 0x80;
}

/// The character at `at` of well-formed text.
char32_t decode_utf8(std::string_view text, size_t at);
void append_utf8(std::string& text, char32_t character);

}  // namespace trainyard::tokenizer
