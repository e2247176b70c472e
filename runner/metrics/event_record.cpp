#include "metrics/event_record.h"

#include <array>
#include <bit>
#include <cstring>

namespace trainyard::metrics {
namespace {

static_assert(std::endian::native == std::endian::little);

// Field numbers and wire types of the messages.
constexpr uint8_t kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;
constexpr uint8_t key_of(int field, uint8_t wire_type) {
  return static_cast<uint8_t>(field << 3 | wire_type);
}
constexpr uint8_t kWallTime = key_of(1, kFixed64), kStep = key_of(2, kVarint), kFileVersion = key_of(3, kBytes),
                  kSummary = key_of(5, kBytes), kValue = key_of(1, kBytes), kTag = key_of(1, kBytes),
                  kSimpleValue = key_of(2, kFixed32);
constexpr size_t kHeader = 12, kFooter = 4;  // of a record

template <typename T>
std::string bytes_of(T number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}
template <typename T>
T number_at(std::string_view text, size_t at) {
  T number{};
  std::memcpy(&number, text.data() + at, sizeof number);
  return number;
}

std::string varint(uint64_t number) {
  std::string bytes;
  for (; number >= 0x80; number >>= 7) bytes += static_cast<char>(number | 0x80);
  return bytes + static_cast<char>(number);
}

std::string field(uint8_t key, std::string_view payload) {
  std::string text(1, static_cast<char>(key));
  const bool has_length = (key & 7) == kBytes;
  if (has_length) text += varint(payload.size());
  return text.append(payload);
}

/// Castagnoli's polynomial, reflected, a byte at a time.
constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82F63B78U : 0);
    table[byte] = crc;
  }
  return table;
}

/// CRC32C, rotated and shifted: TensorFlow stores it so, as a CRC of text that holds CRCs is a weak one.
uint32_t masked_crc(std::string_view text) {
  static constexpr std::array<uint32_t, 256> kTable = crc_table();
  uint32_t crc = ~0U;
  for (const char c : text) crc = crc >> 8 ^ kTable[(crc ^ static_cast<uint8_t>(c)) & 0xFF];
  return std::rotr(~crc, 15) + 0xA282EAD8U;
}

/// The step of an event that begins as ours do: wall_time, then perhaps step.
int64_t step_of(std::string_view event) {
  size_t at = 1 + sizeof(double);
  if (event.size() <= at || static_cast<uint8_t>(event[0]) != kWallTime || static_cast<uint8_t>(event[at]) != kStep)
    return 0;
  uint64_t step = 0;
  for (int shift = 0; ++at < event.size() && shift < 63; shift += 7) {
    step |= static_cast<uint64_t>(event[at] & 0x7F) << shift;
    if ((event[at] & 0x80) == 0) break;
  }
  return static_cast<int64_t>(step);
}

}  // namespace

std::string version_event(double wall_time) {
  return field(kWallTime, bytes_of(wall_time)) + field(kFileVersion, "brain.Event:2");
}

std::string scalars_event(double wall_time, int64_t step, std::span<const Scalar> scalars) {
  std::string summary;
  for (const Scalar& scalar : scalars)
    summary += field(kValue, field(kTag, scalar.tag) + field(kSimpleValue, bytes_of(scalar.value)));
  return field(kWallTime, bytes_of(wall_time)) + field(kStep, varint(static_cast<uint64_t>(step))) +
         field(kSummary, summary);
}

std::string framed(std::string_view event) {
  const std::string length = bytes_of(static_cast<uint64_t>(event.size()));
  return length + bytes_of(masked_crc(length)) + std::string(event) + bytes_of(masked_crc(event));
}

std::optional<EventRecord> first_record(std::string_view text) {
  if (text.size() < kHeader + kFooter) return std::nullopt;
  const auto length = number_at<uint64_t>(text, 0);
  if (number_at<uint32_t>(text, 8) != masked_crc(text.substr(0, 8)) || length > text.size() - kHeader - kFooter)
    return std::nullopt;
  const std::string_view event = text.substr(kHeader, length);
  if (number_at<uint32_t>(text, kHeader + length) != masked_crc(event)) return std::nullopt;
  return EventRecord{step_of(event), kHeader + length + kFooter};
}

}  // namespace trainyard::metrics
