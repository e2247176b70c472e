#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

#include "ops/add.h"
#include "ops/cast.h"
#include "ops/norm.h"
#include "ops/scale.h"
#include "ops_support.h"
#include "tensor/convert.h"

namespace trainyard {
using namespace test;
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
const std::vector<int64_t> kCounts{0, 1, 7, 33, 1000, 40001};

}  // namespace

TEST_CASE("add: the sum of both, also in place", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes()));
  const int64_t count = GENERATE(from_range(kCounts));
  for_thread_counts([&] {
    Tensor a = random_tensor({count}, dtype, 1, device);
    const Tensor b = random_tensor({count}, dtype, 2, device);
    std::vector<double> expected = in_double(a);
    const std::vector<double> addend = in_double(b);
    for (size_t i = 0; i < expected.size(); ++i) expected[i] += addend[i];
    Tensor out = Tensor::empty({count}, dtype, device);
    ops::add(a, b, out);
    CHECK(relative_error(out, expected) < tolerance(dtype));
    ops::add(a, b, a);
    CHECK(same_bits(a, out));
  });
}

TEST_CASE("add_to: a total takes an addend of the other dtype", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType total_dtype = GENERATE(from_range(floating_dtypes())), dtype = GENERATE(from_range(floating_dtypes()));
  const int64_t count = GENERATE(from_range(kCounts));
  Tensor total = random_tensor({count}, total_dtype, 3, device);
  const Tensor addend = random_tensor({count}, dtype, 4, device);
  std::vector<double> expected = in_double(total);
  const std::vector<double> added = in_double(addend);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += added[i];
  ops::add_to(total, addend);
  CHECK(relative_error(total, expected) < tolerance(total_dtype));
  CHECK_THROWS_WITH(ops::add_to(total, Tensor::zeros({count + 1}, dtype)), Catch::Contains("elements are needed"));
}

TEST_CASE("scale: every element times the factor", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes()));
  const int64_t count = GENERATE(from_range(kCounts));
  Tensor x = random_tensor({count}, dtype, 5, device);
  std::vector<double> expected = in_double(x);
  for (double& value : expected) value *= -1.5;
  ops::scale(x, -1.5F);
  CHECK(relative_error(x, expected) < tolerance(dtype));
  ops::set_zero(x);
  CHECK(relative_error(x, std::vector<double>(static_cast<size_t>(count))) == 0);
}

TEST_CASE("cast: rounds as the 16-bit types do, back is exact, NaN and infinity stay", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(DType::BFloat16, DType::Float16);
  const int64_t count = GENERATE(from_range(kCounts));
  Tensor from = random_tensor({count + 6}, DType::Float32, 6);
  const std::vector<float> special{kNan, -kInfinity, std::numeric_limits<float>::max(), 1.00390625F, 65519.9F, -3e-7F};
  for (size_t i = 0; i < special.size(); ++i) from.values<float>()[static_cast<size_t>(count) + i] = special[i];
  const Tensor rounded_once = converted(from, dtype);
  from = on_device(from, device);
  Tensor to = Tensor::empty({count + 6}, dtype, device), back = Tensor::empty({count + 6}, DType::Float32, device);
  ops::cast(from, to);
  CHECK(same_bits(to, rounded_once));
  ops::cast(to, back);
  CHECK(same_bits(back, converted(rounded_once, DType::Float32)));
  Tensor same = Tensor::empty({count + 6}, DType::Float32, device);
  ops::cast(from, same);
  CHECK(same_bits(from, same));
  CHECK_THROWS_WITH(ops::cast(int_tensor({1}), same), Catch::Contains("from is int32"));
}

TEST_CASE("sum_of_squares: the double-precision sum, of the same bits for any number of threads", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes()));
  const int64_t count = GENERATE(from_range(kCounts));
  const Tensor x = random_tensor({count}, dtype, 7, device);
  double expected = 0;
  for (const double value : in_double(x)) expected += value * value;
  const auto squares = [&x] { return on_device(ops::sum_of_squares(x), {}).values<double>()[0]; };
  const double sum = squares();
  CHECK(sum == Approx(expected).epsilon(1e-12));
  for_thread_counts([&] { CHECK(squares() == sum); });
}

TEST_CASE("all_finite, sum_of_squares: one NaN or infinity anywhere shows", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes()));
  const float bad = std::vector<float>{kNan, kInfinity, -kInfinity}[GENERATE(0U, 1U, 2U)];
  const int64_t at = GENERATE(0, 17, 39999, 40000);
  Tensor floats = random_tensor({40001}, DType::Float32, 8);
  CHECK(ops::all_finite(on_device(converted(floats, dtype), device)));
  floats.data<float>()[at] = bad;
  const Tensor x = on_device(converted(floats, dtype), device);
  CHECK_FALSE(ops::all_finite(x));
  CHECK_FALSE(std::isfinite(on_device(ops::sum_of_squares(x), {}).values<double>()[0]));
  CHECK(ops::all_finite(x.rows(0, at)));
}

}  // namespace trainyard
