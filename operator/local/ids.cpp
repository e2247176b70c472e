#include "local/ids.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>

namespace trainyard::local {
namespace {

template <size_t kCount>
std::array<unsigned char, kCount> random_bytes() {
  std::array<unsigned char, kCount> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))  // never short for so few
    throw std::system_error(errno, std::system_category(), "getrandom");
  return bytes;
}

}  // namespace

std::string random_uid() {
  auto bytes = random_bytes<16>();
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0f) | 0x40);
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3f) | 0x80);
  std::string uid;
  for (size_t i = 0; i < bytes.size(); ++i)
    uid += fmt::format("{}{:02x}", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", bytes[i]);
  return uid;
}

std::string random_name_end() {
  constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";  // the API server's: no word comes about
  std::string end;
  for (const unsigned char byte : random_bytes<5>()) end += kLetters[byte % kLetters.size()];
  return end;
}

}  // namespace trainyard::local
