#include "ops/float8.h"

#include <catch2/catch.hpp>

#include <bit>
#include <cmath>
#include <limits>

#include "ops_support.h"
#include "tensor/convert.h"

namespace trainyard {
using namespace test;
using ops::Along;
using ops::Float8Cast;
using ops::Float8Matrix;
using ops::Float8Wanted;
using ops::ScaleOf;
namespace {

constexpr ScaleOf kScales[] = {ScaleOf::Tensor, ScaleOf::Row, ScaleOf::TensorByRows};

double largest_of(DType dtype) {
  return dtype == DType::Float8E5M2 ? 57344 : 448;
}

/// x [rows, columns] or, `by_columns`, xᵀ as the factor that a cast makes of it: values and 1 / scales by the formula.
struct Expected {
  std::vector<double> values, inverse;
};

Expected expected_factor(const Tensor& x, const Float8Cast& cast, bool by_columns) {
  const std::vector<double> all = in_double(x);
  const auto rows = static_cast<size_t>(x.size(by_columns ? 1 : 0)),
             inner = static_cast<size_t>(x.size(by_columns ? 0 : 1));
  const auto at = [&](size_t row, size_t i) { return by_columns ? all[i * rows + row] : all[row * inner + i]; };
  const auto stride = static_cast<size_t>(ops::padded_inner(static_cast<int64_t>(inner)));
  Expected expected{std::vector<double>(rows * stride), {}};
  double of_all = 0;
  for (const double value : all) of_all = std::max(of_all, std::abs(value));
  for (size_t row = 0; row < rows; ++row) {
    double most = 0;
    for (size_t i = 0; i < inner; ++i) most = std::max(most, std::abs(at(row, i)));
    if (cast.scale_of != ScaleOf::Row) most = of_all;
    auto scale = static_cast<float>(largest_of(cast.dtype) / std::max(most, 1e-12));
    if (cast.power_of_2) scale = static_cast<float>(std::exp2(std::floor(std::log2(scale))));
    for (size_t i = 0; i < inner; ++i) {
      const double scaled = static_cast<float>(at(row, i)) * scale, largest = largest_of(cast.dtype);
      expected.values[row * stride + i] = std::clamp(scaled, -largest, largest);
    }
    if (row == 0 || cast.scale_of != ScaleOf::Tensor) expected.inverse.push_back(1.0F / scale);
  }
  expected.values = rounded(expected.values, cast.dtype);
  return expected;
}

void check_factor(const Float8Matrix& made, const Expected& expected) {
  CHECK(in_double(made.values) == expected.values);
  CHECK(in_double(made.inverse_scale) == expected.inverse);
}

/// Rows and columns of very different sizes.
Tensor uneven_tensor(const Shape& shape, DType dtype, uint32_t seed, Device device) {
  Tensor made = random_tensor(shape, DType::Float32, seed);
  for (int64_t i = 0; i < made.count(); ++i) {
    const int64_t row = i / shape[1], column = i % shape[1];
    made.values<float>()[static_cast<size_t>(i)] *= std::ldexp(1.0F, static_cast<int>(row % 7 - column % 5));
  }
  return on_device(converted(made, dtype), device);
}

}  // namespace

TEST_CASE("to_float8: values and scales are the formula's, by rows and by columns, padded by zeros", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes()));
  const Shape shape = GENERATE(Shape{1, 16}, Shape{5, 48}, Shape{130, 32}, Shape{67, 144}, Shape{16, 1});
  const Float8Cast cast{.dtype = GENERATE(DType::Float8E4M3, DType::Float8E5M2),
                        .scale_of = GENERATE(from_range(std::begin(kScales), std::end(kScales))),
                        .power_of_2 = GENERATE(false, true)};
  const Tensor x = uneven_tensor(shape, dtype, 1, device);
  const ops::Float8Factors both = ops::to_float8(x, cast, Float8Wanted::Both);
  check_factor(both.by_rows, expected_factor(x, cast, false));
  check_factor(both.by_columns, expected_factor(x, cast, true));
  check_factor(ops::to_float8(x, cast, Float8Wanted::ByRows).by_rows, expected_factor(x, cast, false));
  check_factor(ops::to_float8(x, cast, Float8Wanted::ByColumns).by_columns, expected_factor(x, cast, true));
}

TEST_CASE("to_float8: zeros have a scale, what is not finite is NaN, and nothing has no values", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const ScaleOf scale_of = GENERATE(from_range(std::begin(kScales), std::end(kScales)));
  const auto factor = [&](const std::vector<float>& values) {
    const Shape shape{static_cast<int64_t>(values.size()) / 16, 16};
    const Tensor x = on_device(Tensor::from<float>(values, shape), device);
    return ops::to_float8(x, {.scale_of = scale_of}, Float8Wanted::ByRows).by_rows;
  };
  const Float8Matrix zeros = factor(std::vector<float>(16, 0));
  CHECK(in_double(zeros.values) == std::vector<double>(16, 0));
  CHECK(in_double(zeros.inverse_scale).at(0) == 1.0F / static_cast<float>(448 / 1e-12));
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> values(16, 1);
    values[3] = value;
    CHECK(std::isnan(in_double(factor(values).values)[3]));
  }
  CHECK(factor({}).values.count() == 0);
}

TEST_CASE("absmax: of all, of rows and of columns, past a block's edge", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes()));
  const Shape shape = GENERATE(Shape{1, 1}, Shape{3, 7}, Shape{300, 257}, Shape{0, 16});
  const Tensor x = uneven_tensor(shape, dtype, 2, device);
  const std::vector<double> all = in_double(x);
  std::vector<double> of_rows(static_cast<size_t>(shape[0])), of_columns(static_cast<size_t>(shape[1])), of_all{0};
  for (size_t i = 0; i < all.size(); ++i)
    for (double* const most : {&of_rows[i / of_columns.size()], &of_columns[i % of_columns.size()], of_all.data()})
      *most = std::max(*most, std::abs(all[i]));
  const auto most = [&](Along along, size_t count) {
    Tensor made = Tensor::empty({static_cast<int64_t>(count)}, DType::Float32, device);
    ops::absmax(x, along, made);
    return in_double(made);
  };
  CHECK(most(Along::All, 1) == of_all);
  CHECK(most(Along::Rows, of_rows.size()) == of_rows);
  CHECK(most(Along::Columns, of_columns.size()) == of_columns);
}

TEST_CASE("transposed: the same patterns by columns", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const Float8Cast cast{.dtype = GENERATE(DType::Float8E4M3, DType::Float8E5M2)};
  const Tensor x = uneven_tensor({24, 80}, DType::BFloat16, 3, device);
  const ops::Float8Factors both = ops::to_float8(x, cast, Float8Wanted::Both);
  const Float8Matrix turned = ops::transposed(both.by_rows);
  CHECK(same_bits(turned.values, both.by_columns.values));
  CHECK(same_bits(turned.inverse_scale, both.by_columns.inverse_scale));
}

TEST_CASE("float8_matmul: equals the double-precision product of what the factors stand for", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const ScaleOf scale_of = GENERATE(from_range(std::begin(kScales), std::end(kScales)));
  const DType of_a = GENERATE(DType::Float8E4M3, DType::Float8E5M2);
  const DType of_c = GENERATE(from_range(floating_dtypes()));
  const auto accumulate = GENERATE(ops::Accumulate::No, ops::Accumulate::Yes);
  const bool fast_sums = GENERATE(false, true);
  const auto [m, k, n] =
      GENERATE(std::array<int64_t, 3>{1, 16, 16}, std::array<int64_t, 3>{5, 37, 48}, std::array<int64_t, 3>{0, 16, 32},
               std::array<int64_t, 3>{3, 0, 16}, std::array<int64_t, 3>{66, 130, 80});
  // c may begin anywhere, and so may scales
  const auto [first, first_scale] =
      GENERATE(std::array<int64_t, 2>{0, 0}, std::array<int64_t, 2>{1, 0}, std::array<int64_t, 2>{0, 1});
  const ScaleOf other = scale_of == ScaleOf::Row ? ScaleOf::TensorByRows : scale_of;
  CAPTURE(static_cast<int>(scale_of), of_a, of_c, static_cast<int>(accumulate), fast_sums, m, k, n, first, first_scale);
  auto a = ops::to_float8(uneven_tensor({m, k}, DType::Float32, 1, device), {.dtype = of_a, .scale_of = scale_of},
                          Float8Wanted::ByRows)
               .by_rows;
  const int64_t scales = a.inverse_scale.count();
  Tensor moved = Tensor::empty({scales + 1}, DType::Float32, device).rows(first_scale, scales);
  copy(a.inverse_scale, moved);
  a.inverse_scale = moved;
  const auto b =
      ops::to_float8(uneven_tensor({n, k}, DType::Float32, 2, device), {.scale_of = other}, Float8Wanted::ByRows)
          .by_rows;
  Tensor c = random_tensor({m * n + 1}, of_c, 3, device).rows(first, m * n).reshape({m, n});
  std::vector<double> expected = in_double(c);
  const std::vector<double> left = in_double(a.values), right = in_double(b.values);
  const std::vector<double> of_row = in_double(a.inverse_scale), of_column = in_double(b.inverse_scale);
  const auto inner = static_cast<size_t>(a.values.size(1)), columns = static_cast<size_t>(n);
  for (size_t i = 0; i < expected.size(); ++i) {
    const size_t row = i / columns, column = i % columns;
    double sum = 0;
    for (size_t p = 0; p < inner; ++p) sum += left[row * inner + p] * right[column * inner + p];
    sum *= of_row[of_row.size() == 1 ? 0 : row] * of_column[of_column.size() == 1 ? 0 : column];
    expected[i] = (accumulate == ops::Accumulate::Yes ? expected[i] : 0) + sum;
  }
  ops::float8_matmul(a, b, c, {.accumulate = accumulate, .fast_sums = fast_sums});
  // Within one instruction Hopper's units keep 13 bits of each addend, whatever the sums are asked to be.
  const double of_sums = device.kind == DeviceKind::Cuda ? 2e-3 : 0;
  CHECK(relative_error(c, expected) < std::max(tolerance(of_c), of_sums));
}

TEST_CASE("float8_matmul: factors that no device multiplies are refused, with what they are", "[ops]") {
  const auto factor = [](int64_t rows, int64_t inner, DType dtype = DType::Float8E4M3, int64_t scales = 1) {
    return Float8Matrix{Tensor::zeros({rows, inner}, dtype), Tensor::zeros({scales}, DType::Float32)};
  };
  Tensor c = Tensor::zeros({4, 32}, DType::Float32);
  CHECK_THROWS_WITH(ops::float8_matmul(factor(4, 16), factor(32, 32), c),
                    "float8_matmul: b is float8_e4m3fn [32, 32], but float8_e4m3fn [32, 16] is needed");
  CHECK_THROWS_WITH(ops::float8_matmul(factor(4, 24), factor(32, 24), c),
                    "float8_matmul: [4, 24] x [32, 24]ᵀ: the last two sizes must be multiples of 16");
  CHECK_THROWS_WITH(ops::float8_matmul(factor(4, 16, DType::Float8E5M2), factor(32, 16, DType::Float8E5M2), c),
                    Catch::Contains("both float8_e5m2"));
  CHECK_THROWS_WITH(ops::float8_matmul(factor(4, 16, DType::Float8E4M3, 4), factor(32, 16), c),
                    "float8_matmul: 4 and 1 scales: one of each, or both by rows");
  CHECK_THROWS_WITH(ops::float8_matmul(factor(4, 16, DType::BFloat16), factor(32, 16), c),
                    "float8_matmul: a is bfloat16, but float8_e4m3fn or float8_e5m2 is needed");
}

}  // namespace trainyard
