#include "ops/layer_norm.h"

#include <catch2/catch.hpp>

#include <cmath>

#include "ops_support.h"

namespace trainyard {
using namespace test;
namespace {

using Values = std::vector<double>;
constexpr double kEps = 1e-5;

struct Size {
  int64_t rows, hidden;
};

/// What a row looks like around its mean, in units of its deviation; `rstd` comes back.
Values normed(const Values& x, size_t row, size_t hidden, double& rstd) {
  double mean = 0, variance = 0;
  for (size_t i = 0; i < hidden; ++i) mean += x[row * hidden + i] / static_cast<double>(hidden);
  for (size_t i = 0; i < hidden; ++i) variance += std::pow(x[row * hidden + i] - mean, 2) / static_cast<double>(hidden);
  rstd = 1 / std::sqrt(variance + kEps);
  Values n(hidden);
  for (size_t i = 0; i < hidden; ++i) n[i] = (x[row * hidden + i] - mean) * rstd;
  return n;
}

Values reference(const Values& x, const Values& weight, const Values& bias) {
  const size_t hidden = weight.size();
  Values y(x.size());
  double rstd = 0;
  for (size_t row = 0; row < x.size() / hidden; ++row) {
    const Values n = normed(x, row, hidden, rstd);
    for (size_t i = 0; i < hidden; ++i) y[row * hidden + i] = n[i] * weight[i] + bias[i];
  }
  return y;
}

struct Gradients {
  Values dx, dweight, dbias;
};

Gradients reference_backward(const Values& dy, const Values& x, const Values& weight) {
  const size_t hidden = weight.size();
  Gradients result{Values(x.size()), Values(hidden), Values(hidden)};
  double rstd = 0;
  for (size_t row = 0; row < x.size() / hidden; ++row) {
    const Values n = normed(x, row, hidden, rstd);
    double mean = 0, along = 0;
    for (size_t i = 0; i < hidden; ++i) {
      const double d = dy[row * hidden + i];
      mean += d * weight[i] / static_cast<double>(hidden);
      along += d * weight[i] * n[i] / static_cast<double>(hidden);
      result.dweight[i] += d * n[i];
      result.dbias[i] += d;
    }
    for (size_t i = 0; i < hidden; ++i)
      result.dx[row * hidden + i] = rstd * (dy[row * hidden + i] * weight[i] - mean - n[i] * along);
  }
  return result;
}

struct Outputs {
  Tensor y, dx, dweight, dbias;
  ops::RowMoments moments;

  Outputs(const Size& size, DType dtype, Device device = {})
      : y(Tensor::empty({size.rows, size.hidden}, dtype, device)),
        dx(Tensor::empty({size.rows, size.hidden}, dtype, device)),
        dweight(Tensor::zeros({size.hidden}, DType::Float32, device)),
        dbias(Tensor::zeros({size.hidden}, DType::Float32, device)),
        moments{Tensor::empty({size.rows}, DType::Float32, device),
                Tensor::empty({size.rows}, DType::Float32, device)} {}
};

}  // namespace

TEST_CASE("layer_norm: equals the formula, and backward its derivative", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes()));
  const Size size = GENERATE(Size{0, 8}, Size{1, 3}, Size{3, 61}, Size{70, 512}, Size{300, 16}, Size{1, 1025});
  const Tensor x = random_tensor({size.rows, size.hidden}, dtype, 1, device),
               weight = random_tensor({size.hidden}, dtype, 2, device),
               bias = random_tensor({size.hidden}, dtype, 3, device), dy = random_tensor(x.shape(), dtype, 4, device);
  const Gradients expected = reference_backward(in_double(dy), in_double(x), in_double(weight));
  for_thread_counts([&] {
    Outputs out(size, dtype, device);
    ops::layer_norm(x, weight, bias, static_cast<float>(kEps), out.y, out.moments);
    CHECK(relative_error(out.y, reference(in_double(x), in_double(weight), in_double(bias))) < tolerance(dtype));
    ops::layer_norm_backward(dy, x, weight, out.moments, {out.dx, out.dweight, out.dbias});
    CHECK(relative_error(out.dx, expected.dx) < tolerance(dtype));
    CHECK(relative_error(out.dweight, expected.dweight) < 1e-5);
    CHECK(relative_error(out.dbias, expected.dbias) < 1e-5);
  });
}

TEST_CASE("layer_norm: a mean far from zero costs no digits, and any number of threads gives the same bits", "[ops][bit_equal]") {
  const Size size{3000, 24};
  Tensor x = random_tensor({size.rows, size.hidden}, DType::Float32, 1);
  for (float& value : x.values<float>()) value += 100;
  const Tensor weight = random_tensor({size.hidden}, DType::Float32, 2),
               bias = random_tensor({size.hidden}, DType::Float32, 3);
  std::vector<Outputs> seen;
  for_thread_counts([&] {
    Outputs& out = seen.emplace_back(size, DType::Float32);
    ops::layer_norm(x, weight, bias, static_cast<float>(kEps), out.y, out.moments);
    ops::layer_norm_backward(x, x, weight, out.moments, {out.dx, out.dweight, out.dbias});
  });
  CHECK(relative_error(seen[0].y, reference(in_double(x), in_double(weight), in_double(bias))) < 1e-4);
  CHECK(same_bits(seen[0].dweight, seen[1].dweight));
  CHECK(same_bits(seen[0].dbias, seen[1].dbias));
}

TEST_CASE("layer_norm_backward: the reference used here is the derivative of the formula", "[ops]") {
  const Values x = in_double(random_tensor({2, 5}, DType::Float32, 1)),
               w = in_double(random_tensor({5}, DType::Float32, 2)),
               b = in_double(random_tensor({5}, DType::Float32, 3)),
               dy = in_double(random_tensor({2, 5}, DType::Float32, 4));
  const auto objective = [&](const Values& at, const Values& weight, const Values& bias) {
    const Values y = reference(at, weight, bias);
    double sum = 0;
    for (size_t i = 0; i < y.size(); ++i) sum += dy[i] * y[i];
    return sum;
  };
  const Gradients gradients = reference_backward(dy, x, w);
  for (size_t i = 0; i < x.size(); ++i)
    CHECK(gradients.dx[i] ==
          Approx(difference_quotient([&](const auto& at) { return objective(at, w, b); }, x, i)).margin(1e-7));
  for (size_t i = 0; i < w.size(); ++i) {
    CHECK(gradients.dweight[i] ==
          Approx(difference_quotient([&](const auto& at) { return objective(x, at, b); }, w, i)).margin(1e-7));
    CHECK(gradients.dbias[i] ==
          Approx(difference_quotient([&](const auto& at) { return objective(x, w, at); }, b, i)).margin(1e-7));
  }
}

TEST_CASE("layer_norm: wrong shapes are refused", "[ops]") {
  Outputs out({2, 30}, DType::Float32);
  const Tensor x = random_tensor({2, 30}, DType::Float32, 1), narrow = random_tensor({29}, DType::Float32, 2),
               weight = random_tensor({30}, DType::Float32, 3);
  CHECK_THROWS_WITH(ops::layer_norm(x, weight, narrow, 1e-5F, out.y, out.moments),
                    "layer_norm: bias is float32 [29], but float32 [30] is needed");
  CHECK_THROWS_WITH(ops::layer_norm_backward(x, x, narrow, out.moments, {out.dx, out.dweight, out.dbias}),
                    "layer_norm_backward: weight is float32 [29], but float32 [30] is needed");
}

}  // namespace trainyard
