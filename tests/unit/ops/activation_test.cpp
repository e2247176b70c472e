#include "ops/activation.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <numbers>

#include "ops/multiply.h"
#include "ops_support.h"

namespace trainyard {
using namespace test;
using ops::Activation;
namespace {

double expected(Activation f, double x) {
  if (f == Activation::Relu) return x > 0 ? x : 0;
  if (f == Activation::Gelu) return x / 2 * (1 + std::erf(x / std::numbers::sqrt2));
  return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

}  // namespace

TEST_CASE("activation: relu and gelu, backward their derivative", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes()));
  const Activation f = GENERATE(Activation::Relu, Activation::Gelu, Activation::GeluTanh);
  const int64_t count = GENERATE(0, 1, 31, 20001);
  Tensor x = random_tensor({count}, dtype, 1, device);
  const Tensor dy = random_tensor({count}, dtype, 2, device);
  const std::vector<double> v = in_double(x), d = in_double(dy);
  std::vector<double> y(v.size()), dx(v.size());
  for (size_t i = 0; i < v.size(); ++i) {
    y[i] = expected(f, v[i]);
    dx[i] = v[i] == 0 ? d[i] * (f == Activation::Relu ? 0 : 0.5)
                      : d[i] * (expected(f, v[i] * (1 + 1e-5)) - expected(f, v[i] * (1 - 1e-5))) / (2e-5 * v[i]);
  }
  for_thread_counts([&] {
    Tensor out = Tensor::empty({count}, dtype, device);
    ops::activation(f, x, out);
    CHECK(relative_error(out, y) < tolerance(dtype));
    ops::activation_backward(f, dy, x, out);
    CHECK(relative_error(out, dx) < tolerance(dtype));
  });
}

TEST_CASE("activation: values far out neither overflow nor lose a NaN", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const Tensor x = on_device(Tensor::from<float>(std::vector<float>{-1e4F, -30, 30, 1e4F, nan, infinity}, {6}), device);
  Tensor y = Tensor::empty({6}, DType::Float32, device);
  ops::activation(Activation::Relu, x, y);
  CHECK(in_double(y)[0] == 0);
  CHECK(in_double(y)[3] == 1e4);
  CHECK(std::isnan(in_double(y)[4]));
  CHECK(std::isinf(in_double(y)[5]));
  for (const Activation gelu : {Activation::Gelu, Activation::GeluTanh}) {
    ops::activation(gelu, x, y);
    CHECK(in_double(y)[0] == Approx(0).margin(1e-30));
    CHECK(in_double(y)[2] == 30);
    CHECK(in_double(y)[3] == 1e4);
    CHECK(std::isnan(in_double(y)[4]));
  }
  CHECK_THROWS_WITH(ops::activation(Activation::Relu, x.rows(0, 5), y),
                    "activation: y is float32 [6], but float32 [5] is needed");
}

TEST_CASE("multiply: the product of each pair", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes()));
  const int64_t count = GENERATE(0, 1, 33, 20001);
  const Tensor a = random_tensor({count}, dtype, 1, device), b = random_tensor({count}, dtype, 2, device);
  std::vector<double> products = in_double(a);
  const std::vector<double> factors = in_double(b);
  for (size_t i = 0; i < products.size(); ++i) products[i] *= factors[i];
  for_thread_counts([&] {
    Tensor y = Tensor::empty({count}, dtype, device);
    ops::multiply(a, b, y);
    CHECK(relative_error(y, products) < tolerance(dtype));
  });
}

}  // namespace trainyard
