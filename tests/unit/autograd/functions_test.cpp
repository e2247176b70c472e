#include "autograd/functions.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

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
    return linear_cross_entropy(h, table, targets, 1 / valid).read().loss_sum / valid;
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

TEST_CASE("autograd: a layer norm and a gelu go back along the slope of their formula") {
  constexpr size_t kWidth = 5;
  const Tensor x0 = random_tensor({3, kWidth}, DType::Float32, 1), end = random_tensor({3, kWidth}, DType::Float32, 2);
  PlacedParameter weight("weight", {kWidth}, 3), bias("bias", {kWidth}, 4);
  Tape tape;
  const Variable x(x0, &tape);
  activation(ops::Activation::Gelu, layer_norm(x, weight, bias, 1e-5F)).gradient()->add(end);
  tape.backward();

  const auto objective = [&](const Doubles& input, const Doubles& w, const Doubles& b) {
    Doubles y(input.size());
    for (size_t row = 0; row < input.size(); row += kWidth) {
      double mean = 0, variance = 0;
      for (size_t i = 0; i < kWidth; ++i) mean += input[row + i] / kWidth;
      for (size_t i = 0; i < kWidth; ++i) variance += (input[row + i] - mean) * (input[row + i] - mean) / kWidth;
      for (size_t i = 0; i < kWidth; ++i) {
        const double normed = (input[row + i] - mean) / std::sqrt(variance + 1e-5) * w[i] + b[i];
        y[row + i] = normed / 2 * (1 + std::erf(normed / std::sqrt(2.0)));
      }
    }
    return dot(y, in_double(end));
  };
  const Doubles at = in_double(x0), w = in_double(weight.value()), b = in_double(bias.value());
  CHECK(relative_error(x.gradient()->take(), slopes([&](const auto& v) { return objective(v, w, b); }, at)) < 1e-5);
  CHECK(relative_error(weight.gradient(), slopes([&](const auto& v) { return objective(at, v, b); }, w)) < 1e-5);
  CHECK(relative_error(bias.gradient(), slopes([&](const auto& v) { return objective(at, w, v); }, b)) < 1e-5);
}

namespace {

/// A convolution, the largest of each window, each image by channels, a product and a cross-entropy.
struct SmallClassifier {
  static constexpr ops::ImageShape kImages{2, 5, 6, 2};
  PlacedParameter filters{"filters", {3, 2, 2, 2}, 1}, filter_bias{"filter_bias", {3}, 2}, weight{"weight", {4, 12}, 3},
      bias{"bias", {4}, 4};
  Tensor pixels = random_tensor({kImages.pixels(), kImages.channels}, DType::Float32, 5), targets = int_tensor({3, 1});

  std::vector<Parameter*> parameters() { return {&filters, &filter_bias, &weight, &bias}; }

  double loss(Tape* tape) {
    const ops::ImageShape convolved = ops::convolved(kImages, 2, 3);
    const Variable features =
        max_pool(convolution(Variable(pixels, tape), kImages, filters, filter_bias), convolved, 2);
    const Variable rows = channels_first(features, ops::pooled(convolved, 2));
    return cross_entropy(linear(rows, weight, bias), targets, 1).read().loss_sum;
  }

  /// The same by loops over image, channel and place, in double.
  [[nodiscard]] double loss_by_loops(const Doubles& f, const Doubles& fb, const Doubles& w, const Doubles& b) const {
    const Doubles x = in_double(pixels);
    const auto pixel = [&](int64_t image, int64_t row, int64_t column, int64_t channel) {
      return x[static_cast<size_t>(((image * 5 + row) * 6 + column) * 2 + channel)];
    };
    const auto filtered = [&](int64_t image, int64_t row, int64_t column, int64_t out) {
      double sum = fb[static_cast<size_t>(out)];
      for (int64_t c = 0; c < 2; ++c)
        for (int64_t i = 0; i < 2; ++i)
          for (int64_t j = 0; j < 2; ++j)
            sum += pixel(image, row + i, column + j, c) * f[static_cast<size_t>(((out * 2 + c) * 2 + i) * 2 + j)];
      return sum;
    };
    double loss = 0;
    for (int64_t image = 0; image < 2; ++image) {
      Doubles logits = b;
      size_t feature = 0;
      for (int64_t out = 0; out < 3; ++out)
        for (int64_t row = 0; row < 2; ++row)
          for (int64_t column = 0; column < 2; ++column, ++feature) {
            double most = -1e30;
            for (const auto& [i, j] : {std::pair{0, 0}, {0, 1}, {1, 0}, {1, 1}})
              most = std::max(most, filtered(image, 2 * row + i, 2 * column + j, out));
            for (size_t k = 0; k < 4; ++k) logits[k] += most * w[k * 12 + feature];
          }
      double total = 0;
      for (const double logit : logits) total += std::exp(logit);
      loss += std::log(total) - logits[image == 0 ? 3 : 1];
    }
    return loss;
  }
};

}  // namespace

TEST_CASE("autograd: a small convolutional classifier has the loss and the slopes of its loops") {
  SmallClassifier model;
  Tape tape;
  const double loss = model.loss(&tape);
  CHECK(loss == model.loss(nullptr));
  tape.backward();
  const Doubles f = in_double(model.filters.value()), fb = in_double(model.filter_bias.value()),
                w = in_double(model.weight.value()), b = in_double(model.bias.value());
  CHECK(loss == Approx(model.loss_by_loops(f, fb, w, b)).epsilon(1e-6));
  const auto check = [&](Parameter& parameter, const Doubles& expected) {
    CAPTURE(parameter.name());
    CHECK(relative_error(parameter.gradient(), expected) < 1e-5);
  };
  check(model.filters, slopes([&](const auto& v) { return model.loss_by_loops(v, fb, w, b); }, f));
  check(model.filter_bias, slopes([&](const auto& v) { return model.loss_by_loops(f, v, w, b); }, fb));
  check(model.weight, slopes([&](const auto& v) { return model.loss_by_loops(f, fb, v, b); }, w));
  check(model.bias, slopes([&](const auto& v) { return model.loss_by_loops(f, fb, w, v); }, b));
}

TEST_CASE("autograd: a sum goes back as its scale in every place") {
  const Tensor x0 = random_tensor({3, 7}, DType::Float32, 1);
  double expected = 0;
  for (const double value : in_double(x0)) expected += value;
  Tape tape;
  const Variable x(x0, &tape);
  const Tensor total = sum(x, 0.25F);
  CHECK(total.values<double>()[0] == Approx(expected).epsilon(1e-6));
  tape.backward();
  CHECK(in_double(x.gradient()->take()) == Doubles(21, 0.25));
}

TEST_CASE("autograd: what is frozen of a norm or a convolution gets no gradient, and the rest the same") {
  SmallClassifier whole, part;
  part.filters.freeze(), part.filter_bias.freeze();
  for (SmallClassifier* const model : {&whole, &part}) {
    Tape tape;
    model->loss(&tape);
    tape.backward();
  }
  CHECK(in_double(part.filters.gradient()) == Doubles(24, 0));
  CHECK(in_double(part.weight.gradient()) == in_double(whole.weight.gradient()));
  PlacedParameter weight("weight", {4}, 3), bias("bias", {4}, 4);
  weight.freeze();
  Tape tape;
  layer_norm(Variable(random_tensor({3, 4}, DType::Float32, 1), &tape), weight, bias, 1e-5F)
      .gradient()
      ->add(random_tensor({3, 4}, DType::Float32, 2));
  tape.backward();
  CHECK(in_double(weight.gradient()) == Doubles(4, 0));
  CHECK(in_double(bias.gradient()) != Doubles(4, 0));
}

TEST_CASE("autograd: new memory for a gradient need not be clear, whatever adds to it and however often") {
  const float garbage = std::numeric_limits<float>::quiet_NaN();
  SmallModel clear, fresh;
  for (Parameter* const parameter : fresh.parameters()) {
    std::ranges::fill(parameter->gradient().values<float>(), garbage);
    parameter->begin_gradient();
  }
  for (SmallModel* const model : {&clear, &fresh}) {
    for (int pass = 0; pass < 2; ++pass) {
      Tape tape;
      model->loss(&tape);
      tape.backward();
    }
  }
  for (size_t i = 0; i < clear.parameters().size(); ++i)
    CHECK(in_double(fresh.parameters()[i]->gradient()) == in_double(clear.parameters()[i]->gradient()));
  PlacedParameter untouched("untouched", {3}, 1);
  std::ranges::fill(untouched.gradient().values<float>(), garbage);
  untouched.begin_gradient();
  CHECK(in_double(untouched.gradient()) == Doubles(3, 0));
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

namespace {

/// What a loss of the sum of two tensors and of its norm leaves in the gradients of both and of the weight.
enum class Used : uint8_t { Both, BothTwice, Norm, Sum };
std::vector<Doubles> gradients_of_norm(Used used, bool in_one_pass, DType residual_dtype) {
  const auto constant = [](uint32_t seed) { return Variable(random_tensor({5, 8}, DType::Float32, seed)); };
  PlacedParameter weight("weight", {8}, 3);
  Tape tape;
  const Variable x(random_tensor({5, 8}, DType::Float32, 1), &tape);
  const Variable residual(random_tensor({5, 8}, residual_dtype, 2), &tape);
  const SumAndNorm seen = in_one_pass ? add_rms_norm(x, residual, weight, 1e-5F) : [&] {
    const Variable sum = add(x, residual);
    return SumAndNorm{sum, rms_norm(sum, weight, 1e-5F)};
  }();
  const auto on_tape = [&](const Variable& factor) { return Variable(factor.value(), &tape); };
  Variable loss;
  switch (used) {
    case Used::Both:
      loss = add(seen.sum, multiply(seen.norm, on_tape(constant(4))));
      break;
    case Used::BothTwice:  // whose gradient of the sum is also that of another
      loss = add(add(seen.sum, on_tape(constant(5))), multiply(seen.norm, on_tape(constant(4))));
      break;
    case Used::Norm:
      loss = multiply(seen.norm, on_tape(constant(4)));
      break;
    case Used::Sum:
      loss = multiply(seen.sum, on_tape(constant(4)));
      break;
  }
  static_cast<void>(sum(multiply(loss, on_tape(constant(6))), 1));
  tape.backward();
  return {in_double(seen.sum.value()), in_double(seen.norm.value()), in_double(x.gradient()->take()),
          in_double(residual.gradient()->take()), in_double(weight.gradient())};
}

}  // namespace

TEST_CASE("add_rms_norm: values and gradients are those of add() and rms_norm(), bit for bit", "[autograd][bit_equal]") {
  const auto used = GENERATE(Used::Both, Used::BothTwice, Used::Norm, Used::Sum);
  const auto residual_dtype = GENERATE(DType::Float32, DType::BFloat16);
  CAPTURE(static_cast<int>(used), residual_dtype == DType::Float32);
  CHECK(gradients_of_norm(used, true, residual_dtype) == gradients_of_norm(used, false, residual_dtype));
}

}  // namespace trainyard::autograd
