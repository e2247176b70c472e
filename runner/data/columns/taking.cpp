#include "data/columns/taking.h"

#include <fmt/format.h>

#include "data/columns/damage.h"

namespace trainyard::data {

std::string_view take(std::string_view& bytes, size_t size) {
  if (size > bytes.size())
    throw Damage(fmt::format("a value of {} B does not fit the {} B that are left", size, bytes.size()));
  const std::string_view taken = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return taken;
}

uint8_t take_byte(std::string_view& bytes) {
  return static_cast<uint8_t>(take(bytes, 1).front());
}

uint32_t take_integer(std::string_view& bytes, size_t size) {
  uint32_t value = 0;
  unsigned shift = 0;
  for (const char c : take(bytes, size)) {
    value |= uint32_t{static_cast<uint8_t>(c)} << shift;
    shift += 8;
  }
  return value;
}

uint64_t take_varint(std::string_view& bytes) {
  uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const uint8_t byte = take_byte(bytes);
    if (shift == 63 && byte > 1) throw Damage("a number has more than 64 bits");
    value |= uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return value;
  }
}

int64_t take_zigzag(std::string_view& bytes) {
  const uint64_t value = take_varint(bytes);
  return static_cast<int64_t>((value >> 1) ^ (~(value & 1) + 1));
}

}  // namespace trainyard::data
