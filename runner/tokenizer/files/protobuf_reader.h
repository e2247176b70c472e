#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"

namespace trainyard::tokenizer {

/// Walks over the fields of a protobuf message in wire format. Throws InputError, beginning with `where`, where the
/// bytes are no such message.
class ProtobufReader {
 public:
  struct Field {
    uint32_t number;
    uint64_t value;          ///< of a varint or fixed-width field
    std::string_view bytes;  ///< of a length-delimited one
    bool has_bytes;

    [[nodiscard]] float as_float() const {
      const auto bits = static_cast<uint32_t>(value);
      float number_value = 0;
      std::memcpy(&number_value, &bits, sizeof(bits));
      return number_value;
    }
  };

  ProtobufReader(std::string_view message, const std::string& where) : rest_(message), where_(where) {}

  /// None at the end.
  std::optional<Field> next() {
    if (rest_.empty()) return std::nullopt;
    const uint64_t tag = varint();
    Field field{static_cast<uint32_t>(tag >> 3U), 0, {}, false};
    switch (tag & 7U) {
      case 0:
        field.value = varint();
        break;
      case 1:
        field.value = fixed(8);
        break;
      case 2:
        field.bytes = take(varint()), field.has_bytes = true;
        break;
      case 5:
        field.value = fixed(4);
        break;
      default:
        fail();
    }
    return field;
  }

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1).front());
      value |= static_cast<uint64_t>(byte & 0x7FU) << shift;
      if (byte < 0x80) return value;
    }
    fail();
  }

  uint64_t fixed(size_t bytes) {
    uint64_t value = 0;
    const std::string_view taken = take(bytes);
    std::memcpy(&value, taken.data(), bytes);  // little-endian, as every machine this runs on
    return value;
  }

  std::string_view take(uint64_t bytes) {
    if (bytes > rest_.size()) fail();
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }

  [[noreturn]] void fail() const {
    throw InputError(fmt::format("{}: no whole SentencePiece model (protobuf message damaged, {} bytes before its end)",
                                 where_, rest_.size()));
  }

  std::string_view rest_;
  const std::string& where_;
};

}  // namespace trainyard::tokenizer
