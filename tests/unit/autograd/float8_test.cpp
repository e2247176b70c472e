// Linear layers in 8 bits, against torchao.
#include <catch2/catch.hpp>

#include <algorithm>
#include <optional>

#include "../ops/ops_support.h"
#include "autograd/functions.h"
#include "autograd/recompute.h"
#include "metrics/trace.h"

namespace trainyard::autograd {
using namespace test;
namespace {

#include "float8_reference.inc"

constexpr int64_t kFloat8Tokens = 3, kFloat8In = 32, kFloat8Out = 16;

struct Recipe {
  Float8Recipe recipe;
  const std::vector<float>&y, &dx, &dw;
};
const Recipe kRecipes[] = {
    {Float8Recipe::Tensorwise, kTensorwiseY, kTensorwiseDx, kTensorwiseDw},
    {Float8Recipe::Rowwise, kRowwiseY, kRowwiseDx, kRowwiseDw},
    {Float8Recipe::RowwiseWithGwHp, kRowwiseWithGwHpY, kRowwiseWithGwHpDx, kRowwiseWithGwHpDw},
};

std::vector<double> as_doubles(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

/// The layer of the reference.
struct Float8Layer {
  Parameter weight{"weight", {kFloat8Out, kFloat8In}, {}};
  Tensor x = Tensor::from<float>(kX, {kFloat8Tokens, kFloat8In}),
         dy = Tensor::from<float>(kDy, {kFloat8Tokens, kFloat8Out});

  explicit Float8Layer(Float8Recipe recipe) {
    weight.set_float8(recipe);
    weight.place(Tensor::from<float>(kWeight, {kFloat8Out, kFloat8In}),
                 Tensor::zeros({kFloat8Out, kFloat8In}, DType::Float32));
  }

  struct Passed {
    Tensor y, dx, dw;
  };
  /// Forward and backward, recomputed where `retention` says how.
  Passed pass(const std::optional<Retention>& retention = {}) {
    Tape tape;
    const Variable input(x, &tape);
    const auto body = [this](const Variable& given) { return linear(given, weight); };
    const Variable y = retention ? checkpoint(input, body, *retention) : body(input);
    y.gradient()->add(dy);
    Passed passed{.y = y.value()};
    tape.backward();
    passed.dx = input.gradient()->take();
    passed.dw = weight.gradient();
    return passed;
  }
};

}  // namespace

TEST_CASE("autograd: a linear layer in 8 bits is torchao's, forward and backward") {
  const Recipe& expected = kRecipes[GENERATE(0, 1, 2)];
  const Float8Layer::Passed passed = Float8Layer(expected.recipe).pass();
  CHECK(relative_error(passed.y, as_doubles(expected.y)) < 2e-6);  // of float32 sums; a step of 8 bits is 6e-2
  CHECK(relative_error(passed.dx, as_doubles(expected.dx)) < 2e-6);
  CHECK(relative_error(passed.dw, as_doubles(expected.dw)) < 2e-6);
}

TEST_CASE("autograd: a linear layer in 8 bits is the same bits when it is recomputed, with its product kept or not", "[bit_equal]") {
  const Float8Recipe recipe = kRecipes[GENERATE(0, 1, 2)].recipe;
  const Retention retention{.keep = GENERATE(Retention::Keep::Inputs, Retention::Keep::Products)};
  const Float8Layer::Passed once = Float8Layer(recipe).pass(), twice = Float8Layer(recipe).pass(retention);
  CHECK(same_bits(once.y, twice.y));
  CHECK(same_bits(once.dx, twice.dx));
  CHECK(same_bits(once.dw, twice.dw));
}

TEST_CASE("autograd: a linear layer in 8 bits that is frozen hands its gradient on, and has none itself") {
  const Recipe& expected = kRecipes[GENERATE(0, 1, 2)];
  Float8Layer layer(expected.recipe);
  layer.weight.freeze();
  const Float8Layer::Passed passed = layer.pass();
  CHECK(relative_error(passed.dx, as_doubles(expected.dx)) < 2e-6);
  CHECK(std::ranges::all_of(passed.dw.values<float>(), [](float value) { return value == 0; }));
}

TEST_CASE("autograd: layers in 8 bits that take one value cast it once, and their way back does without the value") {
  const Float8Recipe recipe = kRecipes[GENERATE(0, 1)].recipe;
  Float8Layer first(recipe), second(recipe), alone(recipe);
  metrics::Trace trace(0);
  std::weak_ptr<Storage> value;
  Tape tape;
  const metrics::AttachTrace attach(&trace, "compute");
  const auto casts = [&trace] {
    return std::ranges::count(trace.spans(), "float8_cast", [](const metrics::Span& span) { return span.name; });
  };
  const Variable input(first.x, &tape);
  {
    const Variable x = scale(input, 1);
    value = x.value().storage();
    for (Float8Layer* const layer : {&first, &second}) linear(x, layer->weight).gradient()->add(layer->dy);
  }
  CHECK(casts() == 1 + 2);  // the weights
  CHECK(value.expired());
  tape.backward();
  CHECK(casts() == 1 + 2 + 2 + 2);  // both gradients; the weights by columns
  const Float8Layer::Passed expected = alone.pass();
  CHECK(same_bits(first.weight.gradient(), expected.dw));
  CHECK(same_bits(second.weight.gradient(), expected.dw));
}

TEST_CASE("autograd: a linear layer in 8 bits takes no tokens") {
  Float8Layer layer(kRecipes[GENERATE(0, 1, 2)].recipe);
  layer.x = Tensor::empty({0, kFloat8In}, DType::Float32);
  layer.dy = Tensor::empty({0, kFloat8Out}, DType::Float32);
  const Float8Layer::Passed passed = layer.pass();
  CHECK(passed.y.shape() == Shape{0, kFloat8Out});
  CHECK(passed.dx.shape() == Shape{0, kFloat8In});
  CHECK(std::ranges::all_of(passed.dw.values<float>(), [](float value) { return value == 0; }));
}

}  // namespace trainyard::autograd
