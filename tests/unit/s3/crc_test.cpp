#include "s3/crc.h"

#include <catch2/catch.hpp>
#include <string>
#include <string_view>

using namespace trainyard::s3;

namespace {

std::string crc_of(CrcKind kind, std::string_view text, size_t first = 0) {
  Crc crc(kind);
  crc.add(text.substr(0, first));
  crc.add(text.substr(first));
  return crc.text();
}

}  // namespace

TEST_CASE("s3: checks of bytes have the published values, whatever pieces the bytes come in", "[s3]") {
  // The check values of "123456789" in the catalogue of parametrised CRC algorithms, in base64.
  const size_t first = GENERATE(0, 1, 8, 9);
  CHECK(crc_of(CrcKind::Crc32, "123456789", first) == "y/Q5Jg==");          // CBF43926
  CHECK(crc_of(CrcKind::Crc32c, "123456789", first) == "4waSgw==");         // E3069283
  CHECK(crc_of(CrcKind::Crc64Nvme, "123456789", first) == "rosUhgp5mIg=");  // AE8B14860A799888
  CHECK(crc_of(CrcKind::Crc32, "") == "AAAAAA==");
  CHECK(base64("Ma") == "TWE=");
}
