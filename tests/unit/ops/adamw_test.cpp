#include "ops/adamw.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

#include "ops_support.h"

namespace trainyard {
using namespace test;

namespace {

/// One tensor, and the formula's in double.
struct Reference {
  ops::AdamWTensor tensor;
  std::vector<double> w, m, v;

  Reference(int64_t count, Device device, double weight_decay) {
    // A view that no vector load is aligned for, where the count is odd.
    const auto made = [&](Tensor whole) { return whole.rows(count % 2, count); };
    const Shape shape{count + count % 2};
    tensor = {.param = made(random_tensor(shape, DType::Float32, 1, device)),
              .m = made(Tensor::zeros(shape, DType::Float32, device)),
              .v = made(Tensor::zeros(shape, DType::Float32, device)),
              .weight_decay = weight_decay};
    w = in_double(tensor.param);
    m.resize(w.size());
    v.resize(w.size());
  }

  void step(double lr, double beta1, double beta2, double grad_scale) {
    const std::vector<double> gradients = in_double(tensor.grad);
    const auto t = static_cast<double>(tensor.step);
    for (size_t i = 0; i < w.size(); ++i) {
      const double g = grad_scale * gradients[i];
      w[i] *= 1 - lr * tensor.weight_decay;
      m[i] = beta1 * m[i] + (1 - beta1) * g;
      v[i] = beta2 * v[i] + (1 - beta2) * g * g;
      w[i] -= lr * (m[i] / (1 - std::pow(beta1, t))) / (std::sqrt(v[i] / (1 - std::pow(beta2, t))) + 1e-8);
    }
  }
};

Tensor scale_of(float value, Device device) {
  return on_device(Tensor::from<float>(std::span(&value, 1), {1}), device);
}

}  // namespace

TEST_CASE("adamw_step: ten steps of tensors of many sizes equal the same formula in double", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  for_thread_counts([&] {
    std::vector<Reference> references;
    for (const int64_t count : {0, 1, 37, 16384, 40000, 0, 40001, 0})
      references.emplace_back(count, device, count % 2 == 0 ? 0.1 : 0);
    for (int64_t step = 1; step <= 10; ++step) {
      std::vector<ops::AdamWTensor> tensors;
      for (Reference& each : references) {
        each.tensor.grad =
            random_tensor(each.tensor.param.shape(), DType::Float32, static_cast<uint32_t>(step) + 1, device);
        each.tensor.step = step;
        tensors.push_back(each.tensor);
      }
      ops::adamw_step(tensors, {.lr = 1e-2, .beta2 = 0.999, .grad_scale = scale_of(0.5F, device)});
      for (Reference& each : references) each.step(1e-2, 0.9, 0.999, 0.5);
    }
    for (const Reference& each : references) {
      CHECK(relative_error(each.tensor.param, each.w) < 1e-5);
      CHECK(relative_error(each.tensor.m, each.m) < 1e-5);
      CHECK(relative_error(each.tensor.v, each.v) < 1e-5);
    }
  });
}

TEST_CASE("adamw_step: a gradient scale of NaN changes nothing, one that is not given is 1", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  Reference given(100, device, 0.1), plain(100, device, 0.1), skipped(100, device, 0.1);
  const std::vector<double> before = skipped.w;
  const auto step = [&](Reference& of, const Tensor& grad_scale) {
    of.tensor.grad = random_tensor({100}, DType::Float32, 2, device);
    ops::adamw_step({&of.tensor, 1}, {.lr = 0.1, .grad_scale = grad_scale});
  };
  step(given, scale_of(1, device));
  step(plain, {});
  step(skipped, scale_of(std::numeric_limits<float>::quiet_NaN(), device));
  CHECK(same_bits(given.tensor.param, plain.tensor.param));
  CHECK(in_double(given.tensor.param) != before);
  CHECK(in_double(skipped.tensor.param) == before);
  CHECK(in_double(skipped.tensor.m) == std::vector<double>(100));
}

TEST_CASE("adamw_step: a zero gradient only decays, and step 0 and other shapes are refused", "[ops]") {
  ops::AdamWTensor one{.param = Tensor::from<float>(std::vector<float>{2}, {1}),
                       .grad = Tensor::zeros({1}, DType::Float32),
                       .m = Tensor::zeros({1}, DType::Float32),
                       .v = Tensor::zeros({1}, DType::Float32),
                       .weight_decay = 0.5};
  ops::adamw_step({&one, 1}, {.lr = 0.1});
  CHECK(one.param.values<float>()[0] == Approx(1.9));
  ops::AdamWTensor early = one, other = one;
  early.step = 0;
  CHECK_THROWS_WITH(ops::adamw_step({&early, 1}, {}), Catch::Contains("step 0"));
  other.grad = Tensor::zeros({2}, DType::Float32);
  CHECK_THROWS_WITH(ops::adamw_step({&other, 1}, {}), Catch::Contains("grad is float32 [2]"));
}

}  // namespace trainyard
