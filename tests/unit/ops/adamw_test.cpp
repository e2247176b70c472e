#include "ops/adamw.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <numeric>

#include "ops/sum.h"
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

TEST_CASE("adamw_step: moments in bfloat16 are right on average, of the same bits by rows, and of others by seed",
          "[ops][bit_equal]") {
  const Device device = GENERATE(from_range(devices()));
  constexpr int64_t kCount = 20001;
  const auto run = [&](uint64_t seed, int64_t steps, std::vector<int64_t> cuts) {
    Tensor param = Tensor::zeros({kCount}, DType::Float32, device),
           grad = Tensor::empty({kCount}, DType::Float32, device);
    Tensor m = Tensor::zeros({kCount}, DType::BFloat16, device), v = Tensor::zeros({kCount}, DType::BFloat16, device);
    ops::fill(grad, 0.3F);
    for (int64_t step = 1; step <= steps; ++step) {
      std::vector<ops::AdamWTensor> parts;
      for (size_t i = 0; i + 1 < cuts.size(); ++i) {
        const auto part = [&](const Tensor& whole) { return whole.rows(cuts[i], cuts[i + 1] - cuts[i]); };
        parts.push_back({.param = part(param),
                         .grad = part(grad),
                         .m = part(m),
                         .v = part(v),
                         .step = step,
                         .seed = seed,
                         .first_element = cuts[i]});
      }
      ops::adamw_step(parts, {.lr = 1e-3, .beta2 = 0.999});
    }
    return ops::AdamWTensor{.param = param, .m = m, .v = v};
  };
  const ops::AdamWTensor whole = run(1, 40, {0, kCount}), cut = run(1, 40, {0, 7, 7, 4000, kCount});
  CHECK(same_bits(whole.m, cut.m));
  CHECK(same_bits(whole.v, cut.v));
  CHECK(same_bits(whole.param, cut.param));
  CHECK_FALSE(same_bits(whole.v, run(2, 40, {0, kCount}).v));
  // What a step adds to v, a thousandth, is less than half the distance of two bfloat16 from some 16 steps on.
  const auto mean = [](const Tensor& moment) {
    const std::vector<double> values = in_double(moment);
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  };
  CHECK(mean(whole.m) == Approx(0.3 * (1 - std::pow(0.9, 40))).epsilon(1e-3));
  CHECK(mean(whole.v) == Approx(0.09 * (1 - std::pow(0.999, 40))).epsilon(1e-3));
  CHECK(mean(whole.param) == Approx(-40 * 1e-3).epsilon(2e-3));
}

TEST_CASE("adamw_step: bfloat16 moments keep infinity and NaN", "[ops]") {
  const Device device = GENERATE(from_range(devices()));
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  ops::AdamWTensor bad{.param = Tensor::zeros({3}, DType::Float32, device),
                       .grad = on_device(Tensor::from<float>(std::vector{infinity, nan, 1.0F}, {3}), device),
                       .m = Tensor::zeros({3}, DType::BFloat16, device),
                       .v = Tensor::zeros({3}, DType::BFloat16, device)};
  ops::adamw_step({&bad, 1}, {.lr = 1});
  CHECK(in_double(bad.m)[0] == infinity);
  CHECK(std::isnan(in_double(bad.m)[1]));
  CHECK(in_double(bad.m)[2] == Approx(0.1).epsilon(0.01));
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
  ops::AdamWTensor mixed = one;
  mixed.v = Tensor::zeros({1}, DType::BFloat16);
  CHECK_THROWS_WITH(ops::adamw_step({&mixed, 1}, {}), Catch::Contains("v is bfloat16"));
}

}  // namespace trainyard
