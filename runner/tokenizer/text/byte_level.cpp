#include "tokenizer/text/byte_level.h"

#include "tokenizer/text/utf8.h"

namespace trainyard::tokenizer {
namespace {

constexpr char32_t kFirstStandIn = 0x100;

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr std::array<char32_t, 256> make_characters() {
  std::array<char32_t, 256> characters{};
  char32_t stand_in = kFirstStandIn;
  for (unsigned byte = 0; byte < 256; ++byte) characters[byte] = stands_for_itself(byte) ? byte : stand_in++;
  return characters;
}

constexpr std::array<char32_t, 256> kCharacters = make_characters();

/// Every character of the table is below U+0144; -1 = no byte.
constexpr std::array<int, 0x144> make_bytes() {
  std::array<int, 0x144> bytes{};
  bytes.fill(-1);
  for (int byte = 0; byte < 256; ++byte) bytes[kCharacters[static_cast<size_t>(byte)]] = byte;
  return bytes;
}

constexpr std::array<int, 0x144> kBytes = make_bytes();

}  // namespace

const std::array<char32_t, 256>& byte_characters() {
  return kCharacters;
}

std::optional<unsigned char> byte_of(char32_t character) {
  if (character >= kBytes.size() || kBytes[character] < 0) return std::nullopt;
  return static_cast<unsigned char>(kBytes[character]);
}

std::string to_byte_level(std::string_view bytes) {
  std::string written;
  for (const char byte : bytes) append_utf8(written, kCharacters[static_cast<unsigned char>(byte)]);
  return written;
}

std::optional<std::string> from_byte_level(std::string_view written) {
  std::string bytes;
  for (size_t at = 0; at < written.size(); at += utf8_length(static_cast<unsigned char>(written[at]))) {
    const auto byte = byte_of(decode_utf8(written, at));
    if (!byte) return std::nullopt;
    bytes += static_cast<char>(*byte);
  }
  return bytes;
}

}  // namespace trainyard::tokenizer
