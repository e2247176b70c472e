#include "ops/swiglu.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

#include "ops_support.h"

namespace trainyard {
using namespace test;
namespace {

double silu(double x) {
  return x / (1 + std::exp(-x));
}

}  // namespace

TEST_CASE("swiglu: silu(gate) times up, backward its derivative", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const DType dtype = GENERATE(from_range(floating_dtypes()));
  const int64_t count = GENERATE(0, 1, 31, 5000, 20001);
  Tensor gate = random_tensor({count}, dtype, 1, device);
  const Tensor up = random_tensor({count}, dtype, 2, device), dy = random_tensor({count}, dtype, 3, device);
  const std::vector<double> g = in_double(gate), u = in_double(up), d = in_double(dy);
  std::vector<double> y(g.size()), dgate(g.size()), dup(g.size());
  for (size_t i = 0; i < g.size(); ++i) {
    y[i] = silu(g[i]) * u[i];
    dup[i] = d[i] * silu(g[i]);
    dgate[i] = d[i] * u[i] * (silu(g[i] + 1e-5) - silu(g[i] - 1e-5)) / 2e-5;  // accurate to 1e-10
  }
  for_thread_counts([&] {
    Tensor out = Tensor::empty({count}, dtype, device), out_gate = out, out_up = Tensor::empty({count}, dtype, device);
    ops::swiglu(gate, up, out);
    CHECK(relative_error(out, y) < tolerance(dtype));
    ops::swiglu_backward(dy, gate, up, out_gate, out_up);
    CHECK(relative_error(out_gate, dgate) < tolerance(dtype));
    CHECK(relative_error(out_up, dup) < tolerance(dtype));
  });
}

TEST_CASE("swiglu: gates far out neither overflow nor lose a NaN", "[ops]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> gates{-1e4F, -100, -88, -20, 0, 20, 88, 100, 1e4F, nan};
  const Tensor gate = Tensor::from<float>(gates, {10}), ones = Tensor::from<float>(std::vector<float>(10, 1), {10});
  Tensor y = Tensor::empty({10}, DType::Float32), dgate = Tensor::empty({10}, DType::Float32),
         dup = Tensor::empty({10}, DType::Float32);
  ops::swiglu(gate, ones, y);
  ops::swiglu_backward(ones, gate, ones, dgate, dup);
  for (size_t i = 0; i < gates.size(); ++i) {
    const double g = gates[i], s = 1 / (1 + std::exp(-g));
    CHECK((std::isnan(g) ? std::isnan(y.values<float>()[i])
                         : y.values<float>()[i] == Approx(g * s).epsilon(1e-5).margin(1e-30)));
    CHECK((std::isnan(g) ? std::isnan(dgate.values<float>()[i])
                         : dgate.values<float>()[i] == Approx(s * (1 + g * (1 - s))).epsilon(1e-5).margin(1e-30)));
  }
  CHECK_THROWS_WITH(ops::swiglu(gate, ones.rows(0, 9), y), "swiglu: up is float32 [9], but float32 [10] is needed");
}

}  // namespace trainyard
