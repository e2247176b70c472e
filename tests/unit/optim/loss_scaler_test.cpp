#include "optim/loss_scaler.h"

#include <catch2/catch.hpp>

#include <vector>

namespace trainyard::optim {
namespace {

using Kind = LossScaling::Kind;

LossScaling dynamic(double init_scale, int64_t growth_interval) {
  return {.kind = Kind::Dynamic, .init_scale = init_scale, .growth_interval = growth_interval};
}

/// The scale of each step of this fate, and of the one after them.
std::vector<double> scales(LossScaler scaler, const std::vector<bool>& overflows) {
  std::vector<double> seen{scaler.scale()};
  for (const bool overflowed : overflows) {
    scaler.update(overflowed);
    seen.push_back(scaler.scale());
  }
  return seen;
}

}  // namespace

// torch.amp.GradScaler("cpu", init_scale=8, growth_interval=2) over the same steps gives these scales (2.11).
TEST_CASE("LossScaler: an overflow halves the scale, good steps in a row double it, and each begins the count anew",
          "[optim]") {
  CHECK(scales(LossScaler(dynamic(8, 2)), {false, false, false, true, false, false, true, true}) ==
        std::vector<double>{8, 8, 16, 16, 8, 8, 16, 8, 4});
  LossScaling other = dynamic(100, 1);
  other.growth_factor = 3, other.backoff_factor = 0.25;
  CHECK(scales(LossScaler(other), {false, true}) == std::vector<double>{100, 300, 75});
}

TEST_CASE("LossScaler: the scale stays a float32 and can be lowered down to 1", "[optim]") {
  CHECK(scales(LossScaler(dynamic(0x1p127, 1)), {false, true, false}) ==
        std::vector<double>{0x1p127, 0x1p127, 0x1p126, 0x1p127});
  LossScaler scaler(dynamic(4, 10));
  for (const double left : {2.0, 1.0}) {
    CHECK(scaler.can_back_off());
    scaler.update(true);
    CHECK(scaler.scale() == left);
  }
  CHECK_FALSE(scaler.can_back_off());
}

TEST_CASE("LossScaler: without scaling 1, with a constant that for good, and neither lets a step be skipped",
          "[optim]") {
  LossScaler none, constant(LossScaling{.kind = Kind::Constant, .init_scale = 1024, .growth_interval = 1});
  CHECK_FALSE(none.is_on());
  CHECK(constant.is_on());
  for (const LossScaler* const scaler : {&none, &constant}) CHECK_FALSE(scaler->can_back_off());
  CHECK(scales(none, {false, false}) == std::vector<double>{1, 1, 1});
  CHECK(scales(constant, {false, false}) == std::vector<double>{1024, 1024, 1024});
}

TEST_CASE("LossScaler: goes on from its state, and one that does not adapt keeps its own scale", "[optim]") {
  LossScaler straight(dynamic(8, 3)), resumed(dynamic(8, 3)), constant(LossScaling{.kind = Kind::Constant});
  for (const bool overflowed : {true, false, false}) straight.update(overflowed);
  resumed.load_state(straight.state());
  constant.load_state(straight.state());
  CHECK(constant.scale() == 65536);
  CHECK(scales(resumed, {false, false}) == scales(straight, {false, false}));
  CHECK(scales(resumed, {false}) == std::vector<double>{4, 8});
}

}  // namespace trainyard::optim
