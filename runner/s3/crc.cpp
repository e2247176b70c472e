#include "s3/crc.h"

#include <openssl/evp.h>

#include <array>
#include <bit>
#include <cstring>

namespace trainyard::s3 {
namespace {

using Table = std::array<std::array<uint64_t, 256>, 8>;

// The polynomials with their bits reversed: IEEE 802.3, Castagnoli, and that of NVM Express.
constexpr uint64_t kPolynomial32 = 0xEDB88320, kPolynomial32c = 0x82F63B78, kPolynomial64Nvme = 0x9A6C9329AC4BC9B5;

/// Eight bytes at a time: table n holds what a byte does that is n bytes before the end of them.
constexpr Table table_of(uint64_t polynomial) {
  Table table{};
  for (uint64_t byte = 0; byte < 256; ++byte) {
    uint64_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1U) ^ ((value & 1U) ? polynomial : 0);
    table[0][byte] = value;
  }
  for (size_t n = 1; n < table.size(); ++n)
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint64_t before = table[n - 1][byte];
      table[n][byte] = (before >> 8U) ^ table[0][before & 0xFFU];
    }
  return table;
}

const Table& table_for(CrcKind kind) {
  static constexpr Table kTable32 = table_of(kPolynomial32), kTable32c = table_of(kPolynomial32c),
                         kTable64 = table_of(kPolynomial64Nvme);
  switch (kind) {
    case CrcKind::Crc32:
      return kTable32;
    case CrcKind::Crc32c:
      return kTable32c;
    case CrcKind::Crc64Nvme:
      break;
  }
  return kTable64;
}

uint64_t ones(CrcKind kind) {
  return kind == CrcKind::Crc64Nvme ? ~uint64_t{0} : 0xFFFFFFFF;
}

static_assert(std::endian::native == std::endian::little, "eight bytes are read as one little-endian number");

}  // namespace

Crc::Crc(CrcKind kind) : kind_(kind), value_(ones(kind)) {}

void Crc::add(std::span<const char> bytes) {
  const Table& table = table_for(kind_);
  uint64_t value = value_;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    uint64_t next = 0;
    std::memcpy(&next, bytes.data(), 8);
    next ^= value;
    value = 0;
    for (size_t n = 0; n < 8; ++n) value ^= table[7 - n][(next >> (8 * n)) & 0xFFU];
  }
  for (const char c : bytes) value = (value >> 8U) ^ table[0][(value ^ static_cast<unsigned char>(c)) & 0xFFU];
  value_ = value;
}

std::string Crc::text() const {
  const size_t count = kind_ == CrcKind::Crc64Nvme ? 8 : 4;
  const uint64_t value = value_ ^ ones(kind_);
  std::string bytes;
  for (size_t i = count; i-- > 0;) bytes += static_cast<char>((value >> (8 * i)) & 0xFFU);
  return base64(bytes);
}

std::string base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // OpenSSL ends it with a zero
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), reinterpret_cast<const unsigned char*>(bytes.data()),
                  static_cast<int>(bytes.size()));
  text.pop_back();
  return text;
}

}  // namespace trainyard::s3
