#include "autograd/functions.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <functional>

#include "../ops/ops_support.h"

namespace trainyard::autograd {
using namespace test;
namespace {

using Doubles = std::vector<double>;

struct PlacedParameter : Parameter {
  PlacedParameter(std::string name, const Shape& shape, uint32_t seed) : Parameter(std::move(name), shape, {}) {
    place(random_tensor(shape, DType::Float32, seed), Tensor::zeros(shape, DType::Float32));
  }
};

/// y [rows, out] = x [rows, in] · wᵀ
Doubles linear_in_double(const Doubles& x, const Doubles& w, size_t in) {
  const size_t rows = x.size() / in, out = w.size() / in;
  Doubles y(rows * out);
  for (size_t row = 0; row < rows; ++row)
    for (size_t o = 0; o < out; ++o)
      for (size_t i = 0; i < in; ++i) y[row * out + o] += x[row * in + i] * w[o * in + i];
  return y;
}

double dot(const Doubles& a, const Doubles& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Central differences of `objective` at every element of `x`.
Doubles slopes(const std::function<double(const Doubles&)>& objective, const Doubles& x) {
  Doubles all;
  for (size_t i = 0; i < x.size(); ++i) all.push_back(difference_quotient(objective, x, i));
  return all;
}

/// A decoder's block between an embedding and a tied head, by every function that records.
struct SmallModel {
  static constexpr int64_t kVocab = 11, kHidden = 8, kFf = 6, kTokens = 6;
  PlacedParameter table{"table", {kVocab, kHidden}, 1}, norm{"norm", {kHidden}, 2}, q{"q", {kHidden, kHidden}, 3},
      k{"k", {4, kHidden}, 4}, v{"v", {4, kHidden}, 5}, gate{"gate", {kFf, kHidden}, 6}, up{"up", {kFf, kHidden}, 7},
      down{"down", {kHidden, kFf}, 8};
  Tensor ids = int_tensor({3, 1, 4, 1, 5, 9}), positions = int_tensor({0, 1, 2, 3, 4, 5});
  Tensor targets = int_tensor({1, 4, ops::kIgnoredTarget, 5, 9, 2});
  ops::RopeTables rope_tables = ops::rope_tables(8, std::vector<float>{1.0F, 0.1F});

  std::vector<Parameter*> parameters() { return {&table, &norm, &q, &k, &v, &gate, &up, &down}; }

  /// The mean loss; with a tape its gradients wait there.
  double loss(Tape* tape) {
    Variable h = embedding(ids, table, tape);
    const Variable normed = rms_norm(h, norm, 1e-5F);
    const auto rotated = [&](Parameter& weight) { return rope(linear(normed, weight), positions, rope_tables); };
    h = add(h, attention(rotated(q), rotated(k), linear(normed, v), {1, kTokens, kTokens, 2, 1, 4}, {.scale = 0.5F}));
    h = add(h, linear(swiglu(linear(h, gate), linear(h, up)), down));
    const auto valid = static_cast<float>(kTokens - 1);
    return linear_cross_entropy(h, table, targets, 1 / valid).loss_sum / valid;
  }

  /// d(loss) along `direction` of one parameter, by central differences.
  double slope_along(Parameter& parameter, const Doubles& direction) {
    constexpr double kStep = 1e-2;  // float32's rounding and the curvature both stay near 1e-4 of the slope
    double loss_of[2];
    const Tensor value = parameter.value();
    const Doubles before = in_double(value);
    const std::span<float> elements = Tensor(value).values<float>();
    for (const int side : {0, 1}) {
      for (size_t i = 0; i < before.size(); ++i)
        elements[i] = static_cast<float>(before[i] + (side == 1 ? kStep : -kStep) * direction[i]);
      loss_of[side] = loss(nullptr);
    }
    for (size_t i = 0; i < before.size(); ++i) elements[i] = static_cast<float>(before[i]);
    return (loss_of[1] - loss_of[0]) / (2 * kStep);
  }
};

}  // namespace

TEST_CASE("autograd: a chain's gradients are its difference quotients") {
  constexpr size_t kIn = 3, kInner = 4;
  const Tensor x0 = random_tensor({2, kIn}, DType::Float32, 1), end = random_tensor({2, kIn}, DType::Float32, 2);
  PlacedParameter gate("gate", {kInner, kIn}, 3), up("up", {kInner, kIn}, 4), down("down", {kIn, kInner}, 5);
  Tape tape;
  const Variable x(x0, &tape);
  const Variable y = linear(swiglu(linear(x, gate), linear(x, up)), down);
  y.gradient()->add(end);
  tape.backward();

  const auto objective = [&](const Doubles& input, const Doubles& g, const Doubles& u, const Doubles& d) {
    Doubles gated = linear_in_double(input, g, kIn);
    const Doubles raised = linear_in_double(input, u, kIn);
    for (size_t i = 0; i < gated.size(); ++i) gated[i] *= raised[i] / (1 + std::exp(-gated[i]));
    return dot(linear_in_double(gated, d, kInner), in_double(end));
  };
  const Doubles at = in_double(x0), g = in_double(gate.value()), u = in_double(up.value()), d = in_double(down.value());
  const double tolerance = 1e-5;
  CHECK(relative_error(x.gradient()->take(), slopes([&](const auto& v) { return objective(v, g, u, d); }, at)) <
        tolerance);
  CHECK(relative_error(gate.gradient(), slopes([&](const auto& v) { return objective(at, v, u, d); }, g)) < tolerance);
  CHECK(relative_error(up.gradient(), slopes([&](const auto& v) { return objective(at, g, v, d); }, u)) < tolerance);
  CHECK(relative_error(down.gradient(), slopes([&](const auto& v) { return objective(at, g, u, v); }, d)) < tolerance);
}

TEST_CASE("autograd: a linear layer's bias is added to each row, and its gradient is the sum of theirs") {
  constexpr size_t kIn = 5, kOut = 3;
  const Tensor x0 = random_tensor({4, kIn}, DType::Float32, 1), end = random_tensor({4, kOut}, DType::Float32, 2);
  PlacedParameter weight("weight", {kOut, kIn}, 3), bias("bias", {kOut}, 4);
  Tape tape;
  const Variable x(x0, &tape);
  const Variable y = linear(x, weight, bias);
  y.gradient()->add(end);
  tape.backward();

  const auto with_bias = [&](const Doubles& input, const Doubles& w, const Doubles& b) {
    Doubles sum = linear_in_double(input, w, kIn);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += b[i % kOut];
    return sum;
  };
  const auto objective = [&](const Doubles& input, const Doubles& w, const Doubles& b) {
    return dot(with_bias(input, w, b), in_double(end));
  };
  const Doubles at = in_double(x0), w = in_double(weight.value()), b = in_double(bias.value());
  CHECK(relative_error(y.value(), with_bias(at, w, b)) < 1e-6);
  CHECK(relative_error(x.gradient()->take(), slopes([&](const auto& v) { return objective(v, w, b); }, at)) < 1e-5);
  CHECK(relative_error(weight.gradient(), slopes([&](const auto& v) { return objective(at, v, b); }, w)) < 1e-5);
  CHECK(relative_error(bias.gradient(), slopes([&](const auto& v) { return objective(at, w, v); }, b)) < 1e-5);
}

TEST_CASE("autograd: through a whole block with a tied head the loss falls along each gradient as fast as it says") {
  SmallModel model;
  Tape tape;
  const double loss = model.loss(&tape);
  CHECK(loss == model.loss(nullptr));
  tape.backward();
  for (Parameter* const parameter : model.parameters()) {
    CAPTURE(parameter->name());
    Doubles direction = in_double(parameter->gradient());
    const double norm = std::sqrt(dot(direction, direction));
    REQUIRE(norm > 1e-3);
    for (double& each : direction) each /= norm;
    CHECK(model.slope_along(*parameter, direction) == Approx(norm).epsilon(2e-3));
  }
}

TEST_CASE("autograd: without a tape nothing is recorded, and inputs on two tapes are refused") {
  Tape tape, other;
  const Tensor value = random_tensor({2, 4}, DType::Float32, 1);
  const Variable free(value), x(value, &tape), y(value, &other);
  CHECK(add(free, free).gradient() == nullptr);
  CHECK(swiglu(free, free).tape() == nullptr);
  CHECK_THROWS_WITH(add(x, y), "add: its inputs are not on the same tape");
  CHECK_THROWS_WITH(add(x, free), "add: its inputs are not on the same tape");
  CHECK_THROWS_WITH(swiglu(free, y), "swiglu: its inputs are not on the same tape");
  CHECK_THROWS_WITH(attention(x, x, y, {1, 2, 2, 1, 1, 4}, {}), "attention: its inputs are not on the same tape");
}

}  // namespace trainyard::autograd
