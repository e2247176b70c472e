#include "ops/nf4.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <vector>

#include "ops/cast.h"
#include "ops_support.h"

namespace trainyard {
using namespace test;
using ops::Nf4Scales;
namespace {

uint64_t fnv(const std::vector<std::byte>& bytes) {
  uint64_t value = 0xCBF29CE484222325;
  for (const std::byte byte : bytes) value = (value ^ static_cast<uint64_t>(byte)) * 0x100000001B3;
  return value;
}

std::vector<std::byte> bytes_of(const Tensor& tensor) {
  const Tensor here = on_device(tensor, {});
  return {here.raw(), here.raw() + here.bytes()};
}

/// That of nf4_reference.py.
Tensor matrix(int64_t rows, int64_t columns) {
  Tensor made = Tensor::empty({rows, columns}, DType::Float32);
  for (int64_t i = 0; i < made.count(); ++i) {
    const auto drawn = static_cast<float>(static_cast<uint32_t>(static_cast<uint64_t>(i) * 2654435761U) >> 8U);
    made.values<float>()[static_cast<size_t>(i)] = (drawn / 16777216 - 0.5F) * static_cast<float>(1 + i / columns % 7);
  }
  return made;
}

struct Packed {
  Tensor rows;
  Nf4Scales scales;

  [[nodiscard]] Packed on(Device device) const {
    return {on_device(rows, device), {on_device(scales.factor, device), on_device(scales.mean, device)}};
  }
  /// The codes of each row, or its scalers.
  [[nodiscard]] std::vector<std::byte> codes() const { return columns(0, code_bytes()); }
  [[nodiscard]] std::vector<std::byte> scalers() const { return columns(code_bytes(), rows.size(1)); }
  [[nodiscard]] Tensor dequantized(DType dtype) const {
    Tensor values = Tensor::empty({rows.size(0), code_bytes() * 2}, dtype, rows.device());
    ops::nf4_dequantize(rows, scales, values);
    return values;
  }

 private:
  [[nodiscard]] int64_t code_bytes() const { return rows.size(1) / 33 * 32; }
  [[nodiscard]] std::vector<std::byte> columns(int64_t begin, int64_t end) const {
    std::vector<std::byte> bytes;
    for (int64_t row = 0; row < rows.size(0); ++row)
      bytes.insert(bytes.end(), rows.raw() + row * rows.size(1) + begin, rows.raw() + row * rows.size(1) + end);
    return bytes;
  }
};

/// As ranks do that have `part` rows each.
Packed packed_of(const Tensor& values, int64_t part) {
  const int64_t rows = values.size(0), columns = values.size(1);
  Packed made{Tensor::empty({rows, ops::nf4_row_bytes(columns)}, DType::UInt8),
              {Tensor::empty({ops::nf4_factors(values.count())}, DType::Float32), Tensor::empty({1}, DType::Float32)}};
  Tensor most = Tensor::empty({rows, columns / ops::kNf4Block}, DType::Float32);
  const auto by_parts = [&](const auto& act) {
    for (int64_t begin = 0; begin < rows; begin += part) act(begin, std::min(part, rows - begin));
  };
  by_parts([&](int64_t begin, int64_t count) {
    Tensor of_packed = made.rows.rows(begin, count), of_most = most.rows(begin, count);
    ops::nf4_encode(values.rows(begin, count), of_packed, of_most);
  });
  ops::nf4_scales(most, made.scales);
  by_parts([&](int64_t begin, int64_t count) {
    Tensor of_packed = made.rows.rows(begin, count);
    ops::nf4_scale(most.rows(begin, count), made.scales, begin, of_packed);
  });
  return made;
}

/// What nf4_reference.py printed.
struct OfTorchao {
  int64_t rows, columns;
  uint64_t codes, scalers, factors, values, halves;
  float mean;
};
constexpr OfTorchao kOfTorchao[] = {
    {128, 128, 0xb503e873095c193c, 0xd1dbc4bb7b6642c8, 0x409c972e6435ad6b, 0x342b5b327ae61829, 0xbf217a6054da0462,
     0x1.f6b822p+0F},
    {64, 1024, 0x44e4ec64c4f51145, 0x960ac9c0d39c084b, 0x499088b8e2dc6d01, 0x5d759605537292df, 0xd7080d1f2d427ab3,
     0x1.f5b044p+0F},
    {192, 256, 0x29a402eddd807019, 0x7c034c339c27fef8, 0x1c4677a8c947a6ed, 0x512d33aa26724e32, 0xc35de07a052e8861,
     0x1.f7aca0p+0F},
    {1024, 832, 0xbd6eea3219cdd20a, 0xd8f89cad2588b1f1, 0xe60eb8b6048fcdf8, 0xa4f2456f016f26dd, 0xda7216ae36ca7351,
     0x1.faffeap+0F},
    {1920, 1024, 0x5d4d7064f83b4dbb, 0xd92ee8f7779980f2, 0x6a52324779f52f6e, 0xe6c9d9f7af3b9c4a, 0x1236311f2b1bd772,
     0x1.fb49cap+0F},
};

}  // namespace

TEST_CASE("nf4: codes, scalers, factors, mean and what they stand for have the bits of torchao's to_nf4", "[ops]") {
  for (const OfTorchao& expected : kOfTorchao) {
    CAPTURE(expected.rows, expected.columns);
    const Packed packed = packed_of(matrix(expected.rows, expected.columns), expected.rows);
    CHECK(packed.scales.mean.values<float>()[0] == expected.mean);
    CHECK(fnv(packed.codes()) == expected.codes);
    CHECK(fnv(packed.scalers()) == expected.scalers);
    CHECK(fnv(bytes_of(packed.scales.factor)) == expected.factors);
    for (const Device device : devices()) {
      CHECK(fnv(bytes_of(packed.on(device).dequantized(DType::Float32))) == expected.values);
      CHECK(fnv(bytes_of(packed.on(device).dequantized(DType::BFloat16))) == expected.halves);
    }
  }
}

TEST_CASE("nf4: a value is within half a step of what it was, zeros stay zeros, and a last factor has fewer blocks",
          "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const Shape shape = GENERATE(Shape{1, 64}, Shape{3, 192}, Shape{130, 128}, Shape{257, 64});
  Tensor x = random_tensor(shape, DType::Float32, 5);
  std::fill_n(x.data<float>(), 64, 0.0F);
  const Packed packed = packed_of(x, shape[0]);
  const std::vector<double> expected = in_double(x);
  for_thread_counts([&] {
    for (const DType dtype : floating_dtypes()) {
      const std::vector<double> got = in_double(packed.on(device).dequantized(dtype));
      REQUIRE(got.size() == expected.size());
      double furthest = 0, of_zeros = 0;
      for (size_t i = 0; i < got.size(); ++i)
        (i < 64 ? of_zeros : furthest) = std::max(i < 64 ? of_zeros : furthest, std::abs(got[i] - expected[i]));
      CHECK(of_zeros == 0);
      // Half of the widest step, 1 - 0.6962, of a scale of at most 1, and what the scale itself is off.
      CHECK(furthest < 0.1519 + 0.02);
    }
  });
}

TEST_CASE("nf4: ranks that have parts of the rows pack what one does", "[ops]") {
  const Tensor x = matrix(37, 192);
  const Packed whole = packed_of(x, 37);
  for (const int64_t part : {1, 5, 36}) CHECK(same_bits(packed_of(x, part).rows, whole.rows));
}

TEST_CASE("nf4: scales that are all alike, and a matrix without rows", "[ops]") {
  Tensor x = Tensor::zeros({2, 128}, DType::Float32);
  for (size_t i = 0; i < 256; i += 64) x.values<float>()[i] = -0.25F;
  CHECK(same_bits(packed_of(x, 2).dequantized(DType::Float32), x));
  CHECK(packed_of(Tensor::empty({0, 128}, DType::Float32), 1).dequantized(DType::Float32).count() == 0);
}

TEST_CASE("nf4: shapes that do not fit are named", "[ops]") {
  Tensor packed = Tensor::empty({2, 66}, DType::UInt8), most = Tensor::empty({2, 2}, DType::Float32);
  CHECK_THROWS_WITH(ops::nf4_encode(Tensor::zeros({2, 96}, DType::Float32), packed, most),
                    "nf4: rows of 96 values are no whole blocks of 64");
  CHECK_THROWS_WITH(ops::nf4_encode(Tensor::zeros({2, 64}, DType::Float32), packed, most),
                    Catch::Contains("packed") && Catch::Contains("[2, 33]") && Catch::Contains("[2, 66]"));
}

}  // namespace trainyard
