#include "data/idx.h"

#include <zlib.h>
#include <catch2/catch.hpp>

#include <fstream>

#include "base/error.h"
#include "support/support.h"

namespace trainyard::data {
namespace {

const std::string kThreeOf2x2 = std::string({0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 2}) + "abcdefghijkl";

std::string refusal_of(const std::string& content, int dimensions = 3) {
  try {
    parse_idx(content, dimensions, "images");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string gzipped(const std::string& content) {
  const test::TemporaryFolder folder;
  const auto path = folder / "packed";
  gzFile const file = gzopen(path.c_str(), "wb");
  gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  gzclose(file);
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace

TEST_CASE("idx: sizes are big-endian, values as they stand", "[data]") {
  const IdxArray array = parse_idx(kThreeOf2x2, 3, "images");
  CHECK(array.shape == Shape{3, 2, 2});
  CHECK(array.values == "abcdefghijkl");
  const std::string labels = std::string({0, 0, 8, 1, 0, 0, 1, 2}) + std::string(258, '\7');
  CHECK(parse_idx(labels, 1, "labels").shape == Shape{258});
  CHECK(parse_idx(std::string({0, 0, 8, 1, 0, 0, 0, 0}), 1, "labels").values.empty());
}

TEST_CASE("idx: what is no such file is refused with its byte", "[data]") {
  CHECK(refusal_of("") == "images: ends at byte 0, inside its header of 16 bytes");
  CHECK(refusal_of(kThreeOf2x2.substr(0, 15)) == "images: ends at byte 15, inside its header of 16 bytes");
  CHECK(refusal_of(kThreeOf2x2, 1) ==
        "images: byte 0: the magic number is 0x00000803, but 0x00000801 (unsigned bytes, 1 dimension) is needed");
  CHECK(refusal_of("\x1f\x8b\x08 gzip") ==
        "images: byte 0: the magic number is 0x1f8b0820, but 0x00000803 (unsigned bytes, 3 dimensions) is needed");
  CHECK(refusal_of(kThreeOf2x2.substr(0, 27)) ==
        "images: ends at byte 27, but its header says [3, 2, 2], which end at byte 28");
  CHECK(refusal_of(kThreeOf2x2 + "m") ==
        "images: ends at byte 29, but its header says [3, 2, 2], which end at byte 28");
  const std::string huge({0, 0, 8, 3, '\xff', '\xff', '\xff', '\xff', '\xff', '\xff', '\xff', '\xff', 0, 0, 0, 2});
  CHECK(refusal_of(huge) == "images: byte 4: a size of 4294967295 makes more than 1073741824 values");
}

TEST_CASE("idx: a file is read as it is or packed by gzip, and a damaged or missing one is named", "[data]") {
  const test::TemporaryFolder folder;
  const auto written = [&](const std::string& content) {
    std::ofstream(folder / "images", std::ios::binary) << content;
    return folder / "images";
  };
  CHECK(read_idx(written(kThreeOf2x2), 3).values == "abcdefghijkl");
  const std::string packed = gzipped(kThreeOf2x2);
  CHECK(read_idx(written(packed), 3).values == "abcdefghijkl");
  CHECK_THROWS_WITH(read_idx(written(packed.substr(0, packed.size() - 9)), 3),
                    Catch::Contains("images: damaged after"));
  std::string wrong = packed;
  wrong[wrong.size() - 6] = static_cast<char>(wrong[wrong.size() - 6] ^ 1);  // of the checksum
  CHECK_THROWS_WITH(read_idx(written(wrong), 3), Catch::Contains("images: damaged after"));
  CHECK_THROWS_WITH(read_idx(folder / "nothing", 3), Catch::Contains("nothing: No such file or directory"));
}

}  // namespace trainyard::data
