#include <catch2/catch.hpp>

#include <vector>

#include "data/permutation.h"

namespace trainyard::data {

TEST_CASE("permutation: every element comes once, at sizes around powers of two and four", "[data]") {
  const uint64_t size = GENERATE(1, 2, 3, 4, 5, 15, 16, 17, 255, 256, 257, 1000, 4096, 5003);
  const Permutation permutation(size, 7);
  std::vector<int> hits(size);
  for (uint64_t i = 0; i < size; ++i) ++hits.at(permutation(i));
  CHECK(hits == std::vector<int>(size, 1));
}

TEST_CASE("permutation: another key gives another order, the same key the same", "[data]") {
  const Permutation one(1000, 1), again(1000, 1), other(1000, 2);
  int same = 0, fixed = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    CHECK(one(i) == again(i));
    same += one(i) == other(i);
    fixed += one(i) == i;
  }
  CHECK(same < 10);  // one is expected of a random order
  CHECK(fixed < 10);
}

TEST_CASE("permutation: neighbours land all over", "[data]") {
  constexpr uint64_t kSize = 10'000;
  const Permutation permutation(kSize, 3);
  double distance = 0;
  for (uint64_t i = 0; i + 1 < kSize; ++i) {
    const auto a = static_cast<double>(permutation(i)), b = static_cast<double>(permutation(i + 1));
    distance += a < b ? b - a : a - b;
  }
  CHECK(distance / (kSize - 1) ==
        Approx(kSize / 3.0).epsilon(0.03));  // the mean distance of two random points of a line
}

TEST_CASE("permutation: terabytes take no memory", "[data]") {
  const Permutation permutation((uint64_t{1} << 40U) + 12345, 9);
  CHECK(permutation(uint64_t{1} << 40U) < (uint64_t{1} << 40U) + 12345);
  CHECK_THROWS_AS(permutation((uint64_t{1} << 40U) + 12345), std::out_of_range);
}

}  // namespace trainyard::data
