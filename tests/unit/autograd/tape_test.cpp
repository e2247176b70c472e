#include "autograd/tape.h"

#include <catch2/catch.hpp>

#include <memory>
#include <stdexcept>
#include <string>

#include "../ops/ops_support.h"
#include "autograd/functions.h"
#include "autograd/recompute.h"
#include "tensor/memory.h"

namespace trainyard::autograd {
using namespace test;
namespace {

constexpr int64_t kTokens = 5, kHidden = 6, kFf = 7;

/// A weight with a place of its own, whole, values by `seed`, gradient zero.
class Weight : public Parameter {
 public:
  Weight(const Shape& shape, uint32_t seed, DType dtype = DType::Float32) : Parameter("weight", shape, {}) {
    place(random_tensor(shape, dtype, seed), Tensor::zeros(shape, dtype));
  }
};

/// x + down(silu(gate(norm x)) · up(norm x)): a value that is used twice, and a residual.
struct Block {
  Weight norm, gate, up, down;

  explicit Block(DType dtype = DType::Float32)
      : norm({kHidden}, 1, dtype),
        gate({kFf, kHidden}, 2, dtype),
        up({kFf, kHidden}, 3, dtype),
        down({kHidden, kFf}, 4, dtype) {}
  Variable operator()(const Variable& x) {
    const Variable normed = rms_norm(x, norm, 1e-5F);
    return add(x, linear(swiglu(linear(normed, gate), linear(normed, up)), down));
  }
  bool same_gradients(Block& other) {
    return same_bits(norm.gradient(), other.norm.gradient()) && same_bits(gate.gradient(), other.gate.gradient()) &&
           same_bits(up.gradient(), other.up.gradient()) && same_bits(down.gradient(), other.down.gradient());
  }
};

Tensor gradient_of_end(DType dtype = DType::Float32) {
  return random_tensor({kTokens, kHidden}, dtype, 90);
}

/// What x gets where y's gradient is `gradient_of_end()`.
Tensor go_back(Tape& tape, const Variable& x, const Variable& y) {
  y.gradient()->add(gradient_of_end(y.value().dtype()));
  tape.backward();
  return x.gradient()->take();
}

Tensor times(const Tensor& tensor, float factor) {
  Tensor product = Tensor::empty(tensor.shape(), DType::Float32);
  for (size_t i = 0; i < product.values<float>().size(); ++i)
    product.values<float>()[i] = factor * tensor.values<float>()[i];
  return product;
}

}  // namespace

TEST_CASE("tape: steps go back last first, each dropped before the next runs") {
  Tape tape;
  std::string order;
  std::weak_ptr<int> kept_by_last;
  {
    const auto kept = std::make_shared<int>(0);
    kept_by_last = kept;
    tape.record([&order, &kept_by_last] { order += kept_by_last.expired() ? "first" : "too early"; });
    tape.record([&order, kept] { order += "last "; });
  }
  CHECK_FALSE(kept_by_last.expired());
  tape.backward();
  CHECK(order == "last first");
}

TEST_CASE("tape: the branches of a value add up, and none changes what another was given") {
  Tape tape;
  const Tensor value = random_tensor({kTokens, kHidden}, DType::Float32, 7);
  const Variable x(value, &tape);
  const Variable doubled = add(x, x);  // 2x
  const Variable fivefold = add(add(doubled, x), doubled);
  const Variable y = add(fivefold, doubled);  // 7x
  CHECK(relative_error(y.value(), in_double(times(value, 7))) < 1e-6);
  const Tensor end = gradient_of_end();
  y.gradient()->add(end);
  tape.backward();
  CHECK(relative_error(x.gradient()->take(), in_double(times(end, 7))) < 1e-6);
  CHECK(same_bits(end, gradient_of_end()));
}

TEST_CASE("tape: a value that the loss does not depend on gives nothing back") {
  Tape tape;
  Weight used({kHidden, kHidden}, 1), unused({kFf, kHidden}, 2);
  const Variable x(random_tensor({kTokens, kHidden}, DType::Float32, 3), &tape);
  const Variable y = linear(x, used);
  static_cast<void>(checkpoint(linear(x, unused), [](const Variable& z) { return add(z, z); }));
  const Tensor with_branch = go_back(tape, x, y);
  CHECK(same_bits(unused.gradient(), Tensor::zeros({kFf, kHidden}, DType::Float32)));

  Tape alone;
  Weight again({kHidden, kHidden}, 1);
  const Variable x_alone(x.value(), &alone);
  CHECK(same_bits(with_branch, go_back(alone, x_alone, linear(x_alone, again))));
  CHECK(same_bits(used.gradient(), again.gradient()));
}

TEST_CASE("tape: gradients of weights add up over uses and over passes") {
  Weight weight({kHidden, kHidden}, 1), once({kHidden, kHidden}, 1);
  const Tensor value = random_tensor({kTokens, kHidden}, DType::Float32, 3);
  const auto pass = [&](Weight& of, int uses) {
    Tape tape;
    const Variable x(value, &tape);
    Variable y = linear(x, of);
    for (int use = 1; use < uses; ++use) y = add(y, linear(x, of));
    static_cast<void>(go_back(tape, x, y));
  };
  pass(weight, 2);
  pass(weight, 1);
  pass(once, 1);
  CHECK(relative_error(weight.gradient(), in_double(times(once.gradient(), 3))) < 1e-6);
}

TEST_CASE("checkpoint: recomputed, nested too, every gradient has the same bits", "[bit_equal]") {
  const DType dtype = GENERATE(from_range(floating_dtypes()));
  CAPTURE(name_of(dtype));
  const Tensor value = random_tensor({kTokens, kHidden}, dtype, 8);
  const auto run = [&](Block& block, auto forward) {
    Tape tape;
    const Variable x(value, &tape);
    const Variable y = forward(block, x);
    return std::pair{y.value(), go_back(tape, x, y)};
  };
  Block recorded(dtype), recomputed(dtype), nested(dtype);
  const auto [y, dx] = run(recorded, [](Block& block, const Variable& x) { return block(block(x)); });
  const auto [y1, dx1] = run(recomputed, [](Block& block, const Variable& x) {
    return checkpoint(checkpoint(x, std::ref(block)), std::ref(block));
  });
  const auto [y2, dx2] = run(nested, [](Block& block, const Variable& x) {
    return checkpoint(x, [&](const Variable& z) { return block(checkpoint(z, std::ref(block))); });
  });
  CHECK(same_bits(y, y1));
  CHECK(same_bits(y, y2));
  CHECK(same_bits(dx, dx1));
  CHECK(same_bits(dx, dx2));
  CHECK(recorded.same_gradients(recomputed));
  CHECK(recorded.same_gradients(nested));
}

TEST_CASE("checkpoint: runs its body once forward and once back, and only forward without a tape") {
  int runs = 0;
  const auto body = [&](const Variable& x) {
    ++runs;
    return add(x, x);
  };
  const Tensor value = random_tensor({kTokens, kHidden}, DType::Float32, 8);
  CHECK(checkpoint(Variable(value), body).gradient() == nullptr);
  CHECK(runs == 1);
  Tape tape;
  const Variable x(value, &tape);
  const Variable y = checkpoint(x, body);
  CHECK(runs == 2);
  static_cast<void>(go_back(tape, x, y));
  CHECK(runs == 3);
}

TEST_CASE("checkpoint: between forward and backward only its input is kept") {
  const auto ledger = std::make_shared<MemoryLedger>();
  const MemoryScope scope(ledger);
  Block block;
  Tape recorded_tape, recomputed_tape;
  const size_t value_bytes = kTokens * kHidden * sizeof(float);
  const auto kept_by = [&](auto forward) {
    const size_t before = ledger->held_bytes();
    static_cast<void>(forward());  // the result itself goes
    return ledger->held_bytes() - before;
  };
  const auto input = [](Tape& tape) { return Variable(random_tensor({kTokens, kHidden}, DType::Float32, 8), &tape); };
  CHECK(kept_by([&] { return checkpoint(input(recomputed_tape), std::ref(block)); }) == value_bytes);
  CHECK(kept_by([&] { return block(input(recorded_tape)); }) > 5 * value_bytes);
}

TEST_CASE("tape: after backward nothing of the pass is held, and one that never went back frees it as well") {
  const auto ledger = std::make_shared<MemoryLedger>();
  const MemoryScope scope(ledger);
  Block block;
  const size_t before = ledger->held_bytes();
  {
    Tape tape;
    const Variable x(random_tensor({kTokens, kHidden}, DType::Float32, 8), &tape);
    const size_t with_input = ledger->held_bytes();
    static_cast<void>(go_back(tape, x, checkpoint(block(x), std::ref(block))));
    CHECK(ledger->held_bytes() == with_input);
    Tape abandoned;
    static_cast<void>(block(Variable(x.value(), &abandoned)));
    CHECK(ledger->held_bytes() > with_input);
  }
  CHECK(ledger->held_bytes() == before);
}

TEST_CASE("tape: a second backward is refused, also after the first one failed") {
  Tape tape, failed;
  const Variable x(random_tensor({kTokens, kHidden}, DType::Float32, 8), &tape);
  static_cast<void>(go_back(tape, x, add(x, x)));
  CHECK_THROWS_WITH(tape.backward(), Catch::Contains("has gone back already"));

  bool did_first = false;
  failed.record([&] { did_first = true; });
  failed.record([] { throw std::runtime_error("a rank was lost"); });
  CHECK_THROWS_WITH(failed.backward(), "a rank was lost");
  CHECK_THROWS_AS(failed.backward(), std::logic_error);
  CHECK_FALSE(did_first);
}

}  // namespace trainyard::autograd
