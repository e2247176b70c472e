#include "nn/lora.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>
#include <vector>

#include "autograd/functions.h"
#include "nn/layers.h"

namespace trainyard::nn {
namespace {

constexpr int64_t kIn = 5, kOut = 4, kTokens = 3;
constexpr float kScale = 2;  // alpha 4 of rank 2

std::vector<float> random_values(size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(generator);
  return values;
}

Tensor random_tensor(const Shape& shape, unsigned seed) {
  return Tensor::from<float>(random_values(static_cast<size_t>(count_of(shape)), seed), shape);
}

/// A linear layer of [kOut, kIn] with an adapter of rank 2, placed whole.
struct Adapted {
  DropoutContext dropped;
  Linear linear{"layer", kIn, kOut};

  explicit Adapted(bool begins_at_zero) {
    for (Parameter* const parameter : linear.parameters()) parameter->set_base();
    linear.adapt({.rank = 2, .alpha = 4}, dropped);
    for (Parameter* const parameter : linear.parameters()) {
      Tensor value =
          random_tensor(parameter->shape(), static_cast<unsigned>(parameter->shape()[0] * 8 + parameter->shape()[1]));
      if (begins_at_zero && parameter->name() == "layer.lora_B.weight")
        value = Tensor::zeros(parameter->shape(), DType::Float32);
      parameter->place(value, parameter->is_frozen() ? Tensor() : Tensor::zeros(parameter->shape(), DType::Float32));
    }
  }
  Parameter& of(const std::string& suffix) {
    for (Parameter* const parameter : linear.parameters())
      if (parameter->name() == "layer." + suffix) return *parameter;
    throw std::logic_error(suffix);
  }
};

double at(const Tensor& matrix, int64_t row, int64_t column) {
  return matrix.values<float>()[static_cast<size_t>(row * matrix.shape()[1] + column)];
}

/// x · Wᵀ + scale · x · Aᵀ · Bᵀ.
double expected(const Tensor& x, Adapted& adapted, int64_t token, int64_t out) {
  double sum = 0;
  for (int64_t in = 0; in < kIn; ++in) {
    double weight = at(adapted.of("weight").value(), out, in);
    for (int64_t k = 0; k < 2; ++k)
      weight +=
          kScale * at(adapted.of("lora_B.weight").value(), out, k) * at(adapted.of("lora_A.weight").value(), k, in);
    sum += at(x, token, in) * weight;
  }
  return sum;
}

}  // namespace

TEST_CASE("lora: an adapter adds scale times B A x, nothing at first, and is named as PEFT names it") {
  const Tensor x = random_tensor({kTokens, kIn}, 1);
  for (const bool begins_at_zero : {true, false}) {
    Adapted adapted(begins_at_zero);
    const Variable y = adapted.linear(Variable(x));
    for (int64_t token = 0; token < kTokens; ++token)
      for (int64_t out = 0; out < kOut; ++out)
        CHECK(at(y.value(), token, out) == Approx(expected(x, adapted, token, out)).margin(1e-5));
    if (begins_at_zero)
      CHECK(at(y.value(), 0, 0) == Approx(at(autograd::linear(Variable(x), adapted.of("weight")).value(), 0, 0)));
  }
  Adapted adapted(true);
  CHECK(adapted.of("weight").is_base());
  CHECK_FALSE(adapted.of("lora_A.weight").is_frozen());
  CHECK(adapted.of("lora_A.weight").init().scale == Approx(1 / std::sqrt(5.0)));
  CHECK(adapted.of("lora_B.weight").init().scale == 0);
}

TEST_CASE("lora: the way back gives A, B and the input their gradients, and the weight none") {
  Adapted adapted(false);
  const Tensor x = random_tensor({kTokens, kIn}, 1), dy = random_tensor({kTokens, kOut}, 2);
  Tape tape;
  const Variable input(x, &tape);
  const Variable y = adapted.linear(input);
  y.gradient()->add(dy);
  tape.backward();

  const Tensor a = adapted.of("lora_A.weight").value(), b = adapted.of("lora_B.weight").value();
  const Tensor da = adapted.of("lora_A.weight").gradient(), db = adapted.of("lora_B.weight").gradient();
  const Tensor dx = input.gradient()->take();
  for (int64_t k = 0; k < 2; ++k)
    for (int64_t in = 0; in < kIn; ++in) {
      double sum = 0;
      for (int64_t token = 0; token < kTokens; ++token)
        for (int64_t out = 0; out < kOut; ++out) sum += kScale * at(dy, token, out) * at(b, out, k) * at(x, token, in);
      CHECK(at(da, k, in) == Approx(sum).margin(1e-5));
    }
  for (int64_t out = 0; out < kOut; ++out)
    for (int64_t k = 0; k < 2; ++k) {
      double sum = 0;
      for (int64_t token = 0; token < kTokens; ++token)
        for (int64_t in = 0; in < kIn; ++in) sum += kScale * at(dy, token, out) * at(a, k, in) * at(x, token, in);
      CHECK(at(db, out, k) == Approx(sum).margin(1e-5));
    }
  for (int64_t token = 0; token < kTokens; ++token)
    for (int64_t in = 0; in < kIn; ++in) {
      double sum = 0;
      for (int64_t out = 0; out < kOut; ++out) {
        double weight = at(adapted.of("weight").value(), out, in);
        for (int64_t k = 0; k < 2; ++k) weight += kScale * at(b, out, k) * at(a, k, in);
        sum += at(dy, token, out) * weight;
      }
      CHECK(at(dx, token, in) == Approx(sum).margin(1e-5));
    }
}

TEST_CASE("lora: what is dropped is the adapter's input alone, and the same wherever a pass is made again") {
  Adapted adapted(false);
  const Tensor x = random_tensor({kTokens, kIn}, 1);
  const Tensor whole = adapted.linear(Variable(x)).value();
  adapted.dropped = {.rate = 0.5F, .seed = 7, .sequences = Tensor::from<int64_t>(std::vector<int64_t>{11}, {1})};
  const Tensor first = adapted.linear(Variable(x)).value(), second = adapted.linear(Variable(x)).value();
  const auto equal = [](const Tensor& one, const Tensor& other) {
    return std::ranges::equal(one.values<float>(), other.values<float>());
  };
  CHECK(equal(first, second));
  CHECK_FALSE(equal(first, whole));
  adapted.dropped = {};
  CHECK(equal(adapted.linear(Variable(x)).value(), whole));
}

}  // namespace trainyard::nn
