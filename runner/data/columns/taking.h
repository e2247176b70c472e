#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

// Each of these takes a value off the beginning of `bytes` and throws Damage where they end inside it.
namespace trainyard::data {

std::string_view take(std::string_view& bytes, size_t size);
uint8_t take_byte(std::string_view& bytes);
/// Little-endian, of 1 to 4 bytes.
uint32_t take_integer(std::string_view& bytes, size_t size = 4);
/// LEB128: seven bits a byte, the lowest first. Throws Damage for more than 64 bits too.
uint64_t take_varint(std::string_view& bytes);
/// A varint of 2n for n, of 2n - 1 for -n.
int64_t take_zigzag(std::string_view& bytes);

}  // namespace trainyard::data
