#include "ops/adamw.h"

#include <catch2/catch.hpp>

#include <cmath>

#include "ops_support.h"

namespace trainyard {
using namespace test;

TEST_CASE("adamw_step: ten steps equal the same formula in double", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const int64_t count = GENERATE(0, 1, 37, 40000, 40001);
  for_thread_counts([&] {
    Tensor param = random_tensor({count}, DType::Float32, 1, device);
    Tensor m = Tensor::zeros({count}, DType::Float32, device), v = Tensor::zeros({count}, DType::Float32, device);
    std::vector<double> w = in_double(param), first(w.size()), second(w.size());
    for (int64_t step = 1; step <= 10; ++step) {
      const Tensor grad = random_tensor({count}, DType::Float32, static_cast<uint32_t>(step) + 1, device);
      const ops::AdamWStep options{.lr = 1e-2, .beta2 = 0.999, .weight_decay = 0.1, .step = step, .grad_scale = 0.5F};
      ops::adamw_step(param, grad, m, v, options);
      const std::vector<double> gradients = in_double(grad);
      for (size_t i = 0; i < w.size(); ++i) {
        const double g = 0.5 * gradients[i];
        w[i] *= 1 - 1e-2 * 0.1;
        first[i] = 0.9 * first[i] + 0.1 * g;
        second[i] = 0.999 * second[i] + 0.001 * g * g;
        w[i] -=
            1e-2 * (first[i] / (1 - std::pow(0.9, step))) / (std::sqrt(second[i] / (1 - std::pow(0.999, step))) + 1e-8);
      }
    }
    CHECK(relative_error(param, w) < 1e-5);
    CHECK(relative_error(m, first) < 1e-5);
    CHECK(relative_error(v, second) < 1e-5);
  });
}

TEST_CASE("adamw_step: a zero gradient only decays, and step 0 and other shapes are refused", "[ops]") {
  Tensor param = Tensor::from<float>(std::vector<float>{2}, {1}), m = Tensor::zeros({1}, DType::Float32), v = m;
  v = Tensor::zeros({1}, DType::Float32);
  const Tensor grad = Tensor::zeros({1}, DType::Float32);
  ops::adamw_step(param, grad, m, v, {.lr = 0.1, .weight_decay = 0.5});
  CHECK(param.values<float>()[0] == Approx(1.9));
  CHECK_THROWS_WITH(ops::adamw_step(param, grad, m, v, {.step = 0}), Catch::Contains("step 0"));
  CHECK_THROWS_WITH(ops::adamw_step(param, Tensor::zeros({2}, DType::Float32), m, v, {}),
                    Catch::Contains("grad is float32 [2]"));
}

}  // namespace trainyard
