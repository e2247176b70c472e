#include "autograd/recompute.h"

#include <catch2/catch.hpp>

#include <stdexcept>

#include "../ops/ops_support.h"
#include "autograd/functions.h"
#include "tensor/memory.h"

namespace trainyard::autograd {
using namespace test;
namespace {

constexpr int64_t kRows = 6, kWide = 8, kInner = 12;
using Keep = Retention::Keep;

struct Matrix : Parameter {
  Matrix(const Shape& shape, uint32_t seed) : Parameter("matrix", shape, {}) {
    place(random_tensor(shape, DType::Float32, seed), Tensor::zeros(shape, DType::Float32));
  }
};

/// Norm, attention over one head, a gated layer, and residuals: what a transformer's block is made of.
struct Layer {
  Matrix norm{{kWide}, 1}, q{{kWide, kWide}, 2}, k{{kWide, kWide}, 3}, v{{kWide, kWide}, 4}, gate{{kInner, kWide}, 5},
      up{{kInner, kWide}, 6}, down{{kWide, kInner}, 7};

  Variable operator()(const Variable& x) {
    const Variable normed = rms_norm(x, norm, 1e-5F);
    const Variable mixed = attention(linear(normed, q), linear(normed, k), linear(normed, v),
                                     {1, kRows, kRows, 1, 1, kWide}, {.scale = 0.35F});
    const Variable h = add(x, mixed);
    return add(h, linear(swiglu(linear(h, gate), linear(h, up)), down));
  }
  std::vector<Matrix*> all() { return {&norm, &q, &k, &v, &gate, &up, &down}; }
};

struct Outcome {
  Tensor y, dx;
  std::vector<Tensor> gradients;
  size_t kept_activations = 0, kept_offloaded = 0;
};

/// Two layers, each run by `forward(layer, x)`.
template <typename Forward>
Outcome run_layers(const Forward& forward) {
  Layer first, second;
  const auto ledger = std::make_shared<MemoryLedger>();
  const MemoryScope scope(ledger);
  const MemoryKindScope kind(MemoryKind::Activations);
  Tape tape;
  const Variable x(random_tensor({kRows, kWide}, DType::Float32, 20), &tape);
  const Variable y = forward(second, forward(first, x));
  Outcome outcome{.y = y.value()};
  outcome.kept_activations = ledger->held()[MemoryKind::Activations];
  outcome.kept_offloaded = ledger->held()[MemoryKind::Offloaded];
  y.gradient()->add(random_tensor({kRows, kWide}, DType::Float32, 21));
  tape.backward();
  outcome.dx = x.gradient()->take();
  for (Layer* const layer : {&first, &second})
    for (Matrix* const matrix : layer->all()) outcome.gradients.push_back(matrix->gradient());
  return outcome;
}

Outcome run_kept(Retention retention) {
  return run_layers([&](Layer& layer, const Variable& x) { return checkpoint(x, std::ref(layer), retention); });
}

const Outcome& recorded() {
  static const Outcome outcome = run_layers([](Layer& layer, const Variable& x) { return layer(x); });
  return outcome;
}

void check_same(const Outcome& outcome) {
  CHECK(same_bits(outcome.y, recorded().y));
  CHECK(same_bits(outcome.dx, recorded().dx));
  REQUIRE(outcome.gradients.size() == recorded().gradients.size());
  for (size_t i = 0; i < outcome.gradients.size(); ++i) CHECK(same_bits(outcome.gradients[i], recorded().gradients[i]));
}

}  // namespace

TEST_CASE("recompute: whatever is kept and wherever, outputs and gradients have the same bits", "[bit_equal]") {
  const Keep keep = GENERATE(Keep::Inputs, Keep::Products);
  const bool offload = GENERATE(false, true);
  check_same(run_kept({.keep = keep, .offload = offload}));
}

TEST_CASE("recompute: all that is recorded takes most, products less, inputs alone least") {
  const size_t none = recorded().kept_activations, products = run_kept({.keep = Keep::Products}).kept_activations,
               inputs = run_kept({.keep = Keep::Inputs}).kept_activations;
  CHECK(none > products);
  CHECK(products > inputs);
  CHECK(inputs == 3 * kRows * kWide * sizeof(float));  // each layer's input, and the output that the test holds
}

TEST_CASE("recompute: what waits in host memory is counted there and not among activations") {
  const Keep keep = GENERATE(Keep::Inputs, Keep::Products);
  const Outcome here = run_kept({.keep = keep}), there = run_kept({.keep = keep, .offload = true});
  CHECK(here.kept_offloaded == 0);
  CHECK(there.kept_offloaded > 0);
  CHECK(there.kept_activations == kRows * kWide * sizeof(float));
  CHECK(there.kept_activations + there.kept_offloaded == here.kept_activations);
}

TEST_CASE("recompute: regions inside regions agree about who keeps what") {
  const Keep outer = GENERATE(Keep::Inputs, Keep::Products), inner = GENERATE(Keep::Inputs, Keep::Products);
  check_same(run_layers([&](Layer& layer, const Variable& x) {
    return checkpoint(x, [&](const Variable& z) { return checkpoint(z, std::ref(layer), {.keep = inner}); },
                      {.keep = outer});
  }));
}

TEST_CASE("recompute: a product is computed once forward, and again in backward only where it was not kept") {
  const Keep keep = GENERATE(Keep::Inputs, Keep::Products);
  int computed = 0;
  const auto body = [&](const Variable& x) {
    const auto outputs = kept([&] {
      ++computed;
      return std::vector{x.value()};
    });
    const Variable y(outputs[0], x.tape());
    if (x.tape()) x.tape()->record(y, [dx = x.gradient()](Tensor gradient) { dx->add(std::move(gradient)); });
    return y;
  };
  Tape tape;
  const Variable x(random_tensor({2, 2}, DType::Float32, 1), &tape);
  const Variable y = checkpoint(x, body, {.keep = keep});
  CHECK(computed == 1);
  y.gradient()->add(random_tensor({2, 2}, DType::Float32, 2));
  tape.backward();
  CHECK(computed == (keep == Keep::Products ? 1 : 2));
}

TEST_CASE("recompute: a region of several inputs gives each its gradient, and none to one that is not used") {
  const auto sum = [](std::span<const Variable> inputs) { return add(inputs[0], add(inputs[1], inputs[1])); };
  Tape tape;
  const auto input = [&](uint32_t seed) { return Variable(random_tensor({3, 4}, DType::Float32, seed), &tape); };
  const Variable a = input(1), b = input(2), unused = input(3);
  const Variable y = checkpoint({a, b, unused}, sum);
  const Tensor end = random_tensor({3, 4}, DType::Float32, 4);
  y.gradient()->add(end);
  tape.backward();
  CHECK(same_bits(a.gradient()->take(), end));
  const Tensor twice = b.gradient()->take();
  for (size_t i = 0; i < twice.values<float>().size(); ++i)
    CHECK(twice.values<float>()[i] == 2 * end.values<float>()[i]);
  CHECK_FALSE(unused.gradient()->take().defined());
}

TEST_CASE("recompute: an input that others use too gathers its gradient in the order it would have without") {
  Matrix a({kWide, kWide}, 1), b({kWide, kWide}, 2), c({kWide, kWide}, 3);
  const auto uses_twice = [&](const Variable& x) { return add(linear(x, a), linear(x, b)); };
  const auto gradient_of_shared = [&](bool recomputes) {
    Tape tape;
    const Variable shared(random_tensor({kRows, kWide}, DType::Float32, 4), &tape);
    const Variable first = recomputes ? checkpoint(shared, uses_twice) : uses_twice(shared);
    const Variable y = add(first, linear(shared, c));
    y.gradient()->add(random_tensor({kRows, kWide}, DType::Float32, 5));
    tape.backward();
    return shared.gradient()->take();
  };
  CHECK(same_bits(gradient_of_shared(true), gradient_of_shared(false)));
}

TEST_CASE("recompute: inputs on different tapes are refused") {
  Tape one, other;
  const Tensor value = random_tensor({2, 2}, DType::Float32, 1);
  CHECK_THROWS_AS(checkpoint({Variable(value, &one), Variable(value, &other)},
                             [](std::span<const Variable> inputs) { return inputs[0]; }),
                  std::invalid_argument);
}

}  // namespace trainyard::autograd
