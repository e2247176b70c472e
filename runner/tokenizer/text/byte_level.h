#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace trainyard::tokenizer {

/// Byte-level BPE files (GPT-2's bytes_to_unicode) write each byte as one printable character: itself where Latin-1 has
/// a visible one, else U+0100 and up in the order of the bytes, so that a space is U+0120.
const std::array<char32_t, 256>& byte_characters();

/// The byte that `character` stands for; none where it stands for none.
std::optional<unsigned char> byte_of(char32_t character);

/// `bytes` as a byte-level file writes them.
std::string to_byte_level(std::string_view bytes);

/// The bytes that `written` (UTF-8) stands for; none where one of its characters stands for no byte.
std::optional<std::string> from_byte_level(std::string_view written);

}  // namespace trainyard::tokenizer
