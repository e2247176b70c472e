#include "ops/rms_norm.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

#include "ops_support.h"

namespace trainyard {
using namespace test;
namespace {

constexpr double kEps = 1e-5;

struct Rows {
  int64_t tokens, hidden;
};

std::vector<double> reference(const std::vector<double>& x, const std::vector<double>& weight) {
  const size_t hidden = weight.size();
  std::vector<double> y(x.size());
  for (size_t row = 0; row < x.size(); row += hidden) {
    double squares = 0;
    for (size_t i = 0; i < hidden; ++i) squares += x[row + i] * x[row + i];
    for (size_t i = 0; i < hidden; ++i)
      y[row + i] = weight[i] * x[row + i] / std::sqrt(squares / static_cast<double>(hidden) + kEps);
  }
  return y;
}

struct Gradients {
  std::vector<double> dx, dweight;
};

Gradients reference_backward(const std::vector<double>& dy, const std::vector<double>& x,
                             const std::vector<double>& weight) {
  const size_t hidden = weight.size();
  Gradients result{std::vector<double>(x.size()), std::vector<double>(hidden)};
  for (size_t row = 0; row < x.size(); row += hidden) {
    double squares = 0, dot = 0;
    for (size_t i = 0; i < hidden; ++i) {
      squares += x[row + i] * x[row + i];
      dot += dy[row + i] * weight[i] * x[row + i];
    }
    const double rstd = 1 / std::sqrt(squares / static_cast<double>(hidden) + kEps);
    for (size_t i = 0; i < hidden; ++i) {
      result.dx[row + i] =
          rstd * (dy[row + i] * weight[i] - x[row + i] * rstd * rstd * dot / static_cast<double>(hidden));
      result.dweight[i] += dy[row + i] * x[row + i] * rstd;
    }
  }
  return result;
}

}  // namespace

TEST_CASE("rms_norm: equals the formula, and backward its derivative", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes()));
  const Rows size = GENERATE(Rows{0, 8}, Rows{1, 2}, Rows{3, 61}, Rows{70, 512}, Rows{300, 20}, Rows{1, 1025});
  const Tensor x = random_tensor({size.tokens, size.hidden}, dtype, 1, device);
  const Tensor weight = random_tensor({size.hidden}, dtype, 2, device), dy = random_tensor(x.shape(), dtype, 3, device);
  const Gradients expected = reference_backward(in_double(dy), in_double(x), in_double(weight));
  for_thread_counts([&] {
    Tensor y = Tensor::empty(x.shape(), dtype, device), rstd = Tensor::empty({size.tokens}, DType::Float32, device);
    ops::rms_norm(x, weight, static_cast<float>(kEps), y, rstd);
    CHECK(relative_error(y, reference(in_double(x), in_double(weight))) < tolerance(dtype));
    const Tensor dx = Tensor::empty(x.shape(), dtype, device),
                 dweight = Tensor::zeros({size.hidden}, DType::Float32, device);
    ops::rms_norm_backward(dy, x, weight, rstd, {.dx = dx, .dweight = dweight});
    CHECK(relative_error(dx, expected.dx) < tolerance(dtype));
    CHECK(relative_error(dweight, expected.dweight) < tolerance(dtype));
  });
}

TEST_CASE("rms_norm_backward: the reference used here is the derivative of the formula", "[ops]") {
  const std::vector<double> x = in_double(random_tensor({2, 5}, DType::Float32, 1));
  const std::vector<double> weight = in_double(random_tensor({5}, DType::Float32, 2)),
                            dy = in_double(random_tensor({2, 5}, DType::Float32, 3));
  const auto objective = [&](const std::vector<double>& at, const std::vector<double>& with) {
    const std::vector<double> y = reference(at, with);
    double sum = 0;
    for (size_t i = 0; i < y.size(); ++i) sum += dy[i] * y[i];
    return sum;
  };
  const Gradients gradients = reference_backward(dy, x, weight);
  for (size_t i = 0; i < x.size(); ++i)
    CHECK(gradients.dx[i] == Approx(difference_quotient([&](const auto& at) { return objective(at, weight); }, x, i))
                                 .epsilon(1e-6)
                                 .margin(1e-8));
  for (size_t i = 0; i < weight.size(); ++i)
    CHECK(gradients.dweight[i] ==
          Approx(difference_quotient([&](const auto& at) { return objective(x, at); }, weight, i))
              .epsilon(1e-6)
              .margin(1e-8));
}

TEST_CASE("rms_norm_backward: adds to dweight, and to dx where asked", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes())), weight_dtype = GENERATE(from_range(floating_dtypes()));
  const Tensor x = random_tensor({9, 40}, dtype, 1, device), weight = random_tensor({40}, dtype, 2, device),
               dy = random_tensor({9, 40}, dtype, 3, device);
  Tensor y = Tensor::empty(x.shape(), dtype, device), rstd = Tensor::empty({9}, DType::Float32, device);
  ops::rms_norm(x, weight, static_cast<float>(kEps), y, rstd);
  const Tensor dx = random_tensor({9, 40}, dtype, 4, device), dweight = random_tensor({40}, weight_dtype, 5, device);
  Gradients expected = reference_backward(in_double(dy), in_double(x), in_double(weight));
  const std::vector<double> dx_before = in_double(dx), dweight_before = in_double(dweight);
  for (size_t i = 0; i < expected.dx.size(); ++i) expected.dx[i] += dx_before[i];
  for (size_t i = 0; i < expected.dweight.size(); ++i) expected.dweight[i] += dweight_before[i];
  ops::rms_norm_backward(dy, x, weight, rstd, {.dx = dx, .dweight = dweight, .accumulate_dx = true});
  CHECK(relative_error(dx, expected.dx) < tolerance(dtype));
  CHECK(relative_error(dweight, expected.dweight) < std::max(tolerance(dtype), tolerance(weight_dtype)));
}

TEST_CASE("rms_norm_backward: any number of threads gives the same dweight", "[ops]") {
  const Tensor x = random_tensor({3000, 64}, DType::Float32, 1), weight = random_tensor({64}, DType::Float32, 2);
  const Tensor dy = random_tensor(x.shape(), DType::Float32, 3);
  Tensor y = Tensor::empty(x.shape(), DType::Float32), rstd = Tensor::empty({3000}, DType::Float32);
  ops::rms_norm(x, weight, 1e-6F, y, rstd);
  std::vector<Tensor> seen;
  for_thread_counts([&] {
    seen.push_back(Tensor::zeros({64}, DType::Float32));
    ops::rms_norm_backward(dy, x, weight, rstd, {.dx = y, .dweight = seen.back()});
  });
  CHECK(same_bits(seen[0], seen[1]));
}

TEST_CASE("add_rms_norm: gives the sum and the norm of the sum, bit for bit those of the two ops", "[ops][bit_equal]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes()));
  const int64_t hidden = GENERATE(67, 64);
  const Tensor x = random_tensor({21, hidden}, dtype, 1, device),
               residual = random_tensor({21, hidden}, dtype, 2, device),
               weight = random_tensor({hidden}, dtype, 3, device);
  Tensor sum = Tensor::empty(x.shape(), dtype, device), y = Tensor::empty(x.shape(), dtype, device),
         rstd = Tensor::empty({21}, DType::Float32, device);
  ops::add_rms_norm(x, residual, weight, 1e-6F, sum, y, rstd);
  std::vector<double> expected = in_double(x);
  const std::vector<double> added = in_double(residual);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += added[i];
  CHECK(relative_error(sum, expected) < tolerance(dtype));
  Tensor y_alone = Tensor::empty(x.shape(), dtype, device), rstd_alone = Tensor::empty({21}, DType::Float32, device);
  ops::rms_norm(sum, weight, 1e-6F, y_alone, rstd_alone);
  CHECK(same_bits(y, y_alone));
  CHECK(same_bits(rstd, rstd_alone));
}

TEST_CASE("rms_norm: a NaN stays in its row, and wrong shapes are refused", "[ops]") {
  Tensor x = random_tensor({2, 30}, DType::Float32, 1), y = Tensor::empty({2, 30}, DType::Float32),
         rstd = Tensor::empty({2}, DType::Float32);
  const Tensor weight = random_tensor({30}, DType::Float32, 2);
  x.data<float>()[3] = std::numeric_limits<float>::quiet_NaN();
  ops::rms_norm(x, weight, 1e-6F, y, rstd);
  CHECK(std::isnan(y.data<float>()[29]));
  CHECK(std::isfinite(y.data<float>()[30]));
  CHECK_THROWS_WITH(ops::rms_norm(x, random_tensor({31}, DType::Float32, 2), 1e-6F, y, rstd),
                    "rms_norm: weight is float32 [31], but float32 [30] is needed");
}

}  // namespace trainyard
