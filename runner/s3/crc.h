#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace trainyard::s3 {

/// The cyclic redundancy checks by which S3 tells of an object's bytes.
enum class CrcKind { Crc32, Crc32c, Crc64Nvme };

class Crc {
 public:
  explicit Crc(CrcKind kind);

  void add(std::span<const char> bytes);
  /// As the headers x-amz-checksum-… have it: big-endian, in base64.
  [[nodiscard]] std::string text() const;

 private:
  CrcKind kind_;
  uint64_t value_;
};

/// Bytes in base64, with padding.
std::string base64(std::string_view bytes);

}  // namespace trainyard::s3
