#include "ops/rope.h"

#include <catch2/catch.hpp>

#include <cmath>

#include "ops_support.h"

namespace trainyard {
using namespace test;
namespace {

std::vector<float> inverse_frequencies(int64_t head_dim) {
  std::vector<float> values;
  for (int64_t i = 0; i < head_dim / 2; ++i)
    values.push_back(
        static_cast<float>(1.0 / std::pow(10000.0, 2.0 * static_cast<double>(i) / static_cast<double>(head_dim))));
  return values;
}

/// Angles are the float32 products; cos and sin of them in double.
std::vector<double> reference(const Tensor& x, const std::vector<int32_t>& positions, int64_t head_dim) {
  const std::vector<float> frequencies = inverse_frequencies(head_dim);
  std::vector<double> out = in_double(x);
  const int64_t half = head_dim / 2, width = x.size(1);
  for (int64_t token = 0; token < x.size(0); ++token)
    for (int64_t head = 0; head < width; head += head_dim)
      for (int64_t i = 0; i < half; ++i) {
        const float angle =
            static_cast<float>(positions[static_cast<size_t>(token)]) * frequencies[static_cast<size_t>(i)];
        const double c = std::cos(static_cast<double>(angle)), s = std::sin(static_cast<double>(angle));
        double &first = out[token * width + head + i], &second = out[token * width + head + i + half];
        const double rotated = first * c - second * s;
        second = second * c + first * s;
        first = rotated;
      }
  return out;
}

}  // namespace

TEST_CASE("rope: rotates halves of each head by position, and the inverse brings back, in place too", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes()));
  const int64_t head_dim = GENERATE(2, 20, 64, 128), heads = GENERATE(1, 3);
  const std::vector<int32_t> positions{0, 1, 2, 99, 0, 5, 2047};
  const ops::RopeTables here = ops::rope_tables(2048, inverse_frequencies(head_dim));
  const ops::RopeTables tables{on_device(here.cos, device), on_device(here.sin, device)};
  const Tensor places = int_tensor(positions, device);
  for_thread_counts([&] {
    Tensor x = random_tensor({7, heads * head_dim}, dtype, 1, device);
    const std::vector<double> before = in_double(x);
    Tensor out = Tensor::empty(x.shape(), dtype, device);
    ops::rope(x, places, tables, ops::Rotation::Forward, out);
    CHECK(relative_error(out, reference(x, positions, head_dim)) < tolerance(dtype));
    ops::rope(x, places, tables, ops::Rotation::Forward, x);
    CHECK(same_bits(x, out));
    ops::rope(x, places, tables, ops::Rotation::Inverse, x);
    CHECK(relative_error(x, before) < 2 * tolerance(dtype));
  });
}

TEST_CASE("rope_tables: the angle is the float32 product, not the one of double", "[ops]") {
  const std::vector<float> frequencies{0.7498942F};
  const ops::RopeTables tables = ops::rope_tables(8192, frequencies);
  const float angle = 8191.0F * frequencies[0];
  CHECK(tables.cos.values<float>()[8191] == Approx(std::cos(static_cast<double>(angle))).margin(1e-7));
  CHECK(tables.sin.values<float>()[8191] == Approx(std::sin(static_cast<double>(angle))).margin(1e-7));
}

TEST_CASE("rope: no tokens is no work, and a position past the tables or a width that does not divide is refused",
          "[ops]") {
  const ops::RopeTables tables = ops::rope_tables(10, inverse_frequencies(4));
  Tensor none = Tensor::empty({0, 8}, DType::Float32), x = Tensor::zeros({2, 8}, DType::Float32),
         odd = Tensor::zeros({2, 6}, DType::Float32);
  ops::rope(none, int_tensor({}), tables, ops::Rotation::Forward, none);
  CHECK_THROWS_WITH(ops::rope(x, int_tensor({3, 10}), tables, ops::Rotation::Forward, x),
                    "rope: positions[1] is 10, outside 0 to 9");
  CHECK_THROWS_WITH(ops::rope(odd, int_tensor({3, 4}), tables, ops::Rotation::Forward, odd), Catch::Contains("[2, 6]"));
}

}  // namespace trainyard
