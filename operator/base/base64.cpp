#include "base/base64.h"

#include <cstdint>

namespace trainyard {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::optional<std::string> base64_decoded(std::string_view text) {
  std::string bytes;
  uint32_t bits = 0;
  int count = 0, digits = 0, padding = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;
    ++digits;
    if (c == '=') {
      ++padding;
      continue;
    }
    const size_t value = kAlphabet.find(c);
    if (padding > 0 || value == kAlphabet.npos) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count >= 8) bytes.push_back(static_cast<char>(bits >> (count -= 8) & 0xff));
  }
  if (digits % 4 != 0 || padding > 2) return std::nullopt;
  return bytes;
}

std::string base64_encoded(std::string_view bytes) {
  std::string text;
  for (size_t start = 0; start < bytes.size(); start += 3) {
    const std::string_view group = bytes.substr(start, 3);
    uint32_t bits = 0;
    for (size_t index = 0; index < 3; ++index)
      bits = bits << 8 | (index < group.size() ? static_cast<unsigned char>(group[index]) : 0U);
    for (size_t digit = 0; digit < 4; ++digit)
      text.push_back(digit <= group.size() ? kAlphabet[bits >> (18 - 6 * digit) & 63] : '=');
  }
  return text;
}

}  // namespace trainyard
