#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <numeric>

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
std::vector<double> doubles_of(const Tensor& float64) {
  const Tensor here = on_device(float64, {});
  return {here.values<double>().begin(), here.values<double>().end()};
}

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
  const std::vector<float> special{-kInfinity, std::numeric_limits<float>::max(), 1.00390625F, 65519.9F, -3e-7F, kNan};
  for (size_t i = 0; i < special.size(); ++i) from.values<float>()[static_cast<size_t>(count) + i] = special[i];
  const Tensor rounded_once = converted(from, dtype);
  // A device makes NaN of bits of its own, so the last element is looked at by itself.
  const auto numbers = [count](const Tensor& x) { return x.rows(0, count + 5); };
  from = on_device(from, device);
  Tensor to = Tensor::empty({count + 6}, dtype, device), back = Tensor::empty({count + 6}, DType::Float32, device);
  ops::cast(from, to);
  CHECK(same_bits(numbers(to), numbers(rounded_once)));
  CHECK(std::isnan(in_double(to).back()));
  ops::cast(to, back);
  CHECK(same_bits(numbers(back), numbers(converted(rounded_once, DType::Float32))));
  CHECK(std::isnan(in_double(back).back()));
  Tensor same = Tensor::empty({count + 6}, DType::Float32, device);
  ops::cast(from, same);
  CHECK(same_bits(from, same));
  CHECK_THROWS_WITH(ops::cast(int_tensor({1}), same), Catch::Contains("from is int32"));
}

TEST_CASE("sums_of_squares: those in double precision, of the same bits for any number of threads", "[ops][bit_equal]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes()));
  // Of each count one, and views that no vector load is aligned for.
  std::vector<Tensor> tensors;
  for (const int64_t count : kCounts) {
    tensors.push_back(random_tensor({count}, dtype, 7, device));
    tensors.push_back(random_tensor({count + 1}, dtype, 8, device).rows(1, count));
  }
  std::vector<double> expected;
  for (const Tensor& x : tensors) {
    expected.push_back(0);
    for (const double value : in_double(x)) expected.back() += value * value;
  }
  const auto squares = [&tensors] {
    const ops::SquareSums sums = ops::sums_of_squares(tensors);
    std::vector<double> values = doubles_of(sums.of_each);
    values.push_back(doubles_of(sums.total).front());
    return values;
  };
  const std::vector<double> sums = squares();
  expected.push_back(std::accumulate(expected.begin(), expected.end(), 0.0));
  for (size_t i = 0; i < expected.size(); ++i) CHECK(sums[i] == Approx(expected[i]).epsilon(1e-12));
  for_thread_counts([&] { CHECK(squares() == sums); });
  CHECK_THROWS_WITH(ops::sums_of_squares({}), Catch::Contains("no tensors"));
  tensors.push_back(Tensor::zeros({3}, DType::Int32, device));
  CHECK_THROWS_WITH(ops::sums_of_squares(tensors), Catch::Contains("x is int32"));
}

TEST_CASE("clip_factor: as PyTorch, never above one, and 0 is no limit", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const auto factor = [&](std::vector<double> squares, int64_t ranks, double limit, double loss_scale = 1) {
    const int64_t columns = static_cast<int64_t>(squares.size()) / ranks;
    const Tensor given = on_device(Tensor::from<double>(squares, {ranks, columns}), device);
    return on_device(ops::clip_factor(given, limit, loss_scale), {}).values<float>()[0];
  };
  CHECK(factor({4}, 1, 1) == Approx(0.5).epsilon(1e-6));
  CHECK(factor({0.25}, 1, 1) == 1);
  CHECK(factor({0}, 1, 1) == 1);
  CHECK(factor({1e4}, 1, 0) == 1);
  CHECK(factor({2, 99, 2, 98}, 2, 1) == Approx(0.5).epsilon(1e-6));  // a rank a row
  CHECK(factor({4.0 * 64 * 64}, 1, 1, 64) == Approx(0.5 / 64).epsilon(1e-6));
  CHECK(std::isnan(factor({kNan}, 1, 1)));
  CHECK(std::isnan(factor({1, kInfinity}, 2, 0)));
  CHECK_THROWS_WITH(ops::clip_factor(Tensor::zeros({2, 2}, DType::Float32, device), 1), Catch::Contains("squares is"));
}

TEST_CASE("all_finite, sums_of_squares: one NaN or infinity anywhere shows", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes()));
  const float bad = std::vector<float>{kNan, kInfinity, -kInfinity}[GENERATE(0U, 1U, 2U)];
  const int64_t at = GENERATE(0, 17, 39999, 40000);
  Tensor floats = random_tensor({40001}, DType::Float32, 8);
  CHECK(ops::all_finite(on_device(converted(floats, dtype), device)));
  floats.data<float>()[at] = bad;
  const Tensor x = on_device(converted(floats, dtype), device);
  CHECK_FALSE(ops::all_finite(x));
  CHECK_FALSE(std::isfinite(doubles_of(ops::sums_of_squares({&x, 1}).total)[0]));
  CHECK(ops::all_finite(x.rows(0, at)));
}

}  // namespace trainyard
