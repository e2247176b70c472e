#include "optim/schedule.h"

#include <catch2/catch.hpp>

#include <cmath>

namespace trainyard::optim {

TEST_CASE("Schedule: warm-up, stable phase and decay by formula", "[optim]") {
  Schedule schedule{.peak = 2.0,
                    .warmup_steps = 4,
                    .stable_steps = 3,
                    .total_steps = 17,
                    .decay = config::Decay::Cosine,
                    .min_ratio = 0.1};
  CHECK(schedule.at(0) == 0.5);
  CHECK(schedule.at(3) == 2.0);
  CHECK(schedule.at(4) == 2.0);
  CHECK(schedule.at(6) == 2.0);
  CHECK(schedule.at(7) == 2.0);  // progress 0
  CHECK(schedule.at(12) == Approx(2.0 * (0.1 + 0.9 * 0.5)));
  CHECK(schedule.at(16) == Approx(2.0 * (0.1 + 0.9 * 0.5 * (1 + std::cos(3.14159265358979 * 0.9)))));
  CHECK(schedule.at(17) == Approx(0.2));
  CHECK(schedule.at(1000) == Approx(0.2));

  schedule.decay = config::Decay::Linear;
  CHECK(schedule.at(12) == Approx(2.0 * (0.1 + 0.9 * 0.5)));
  schedule.decay = config::Decay::Sqrt;
  CHECK(schedule.at(12) == Approx(2.0 * (0.1 + 0.9 * (1 - std::sqrt(0.5)))));
  schedule.decay = config::Decay::Constant;
  CHECK(schedule.at(16) == 2.0);
}

TEST_CASE("Schedule: a warm-up from zero has the peak after its last step, and decays from there", "[optim]") {
  const Schedule schedule{
      .peak = 2.0, .warmup_steps = 4, .total_steps = 12, .decay = config::Decay::Linear, .warmup_from_zero = true};
  CHECK(schedule.at(0) == 0);
  CHECK(schedule.at(3) == 1.5);
  CHECK(schedule.at(4) == 2.0);
  CHECK(schedule.at(11) == 0.25);
  config::Optimizer settings;
  settings.warmup_steps = 4;
  settings.warmup_from_zero = true;
  CHECK(schedule_of(settings, 12).at(0) == 0);
}

TEST_CASE("Schedule: without warm-up or room for decay", "[optim]") {
  CHECK(Schedule{.peak = 1, .total_steps = 10, .decay = config::Decay::Linear}.at(0) == 1.0);
  CHECK(Schedule{.peak = 1, .warmup_steps = 10, .total_steps = 10, .decay = config::Decay::Linear, .min_ratio = 0.5}.at(
            9) == 1.0);
  CHECK(Schedule{.peak = 1, .warmup_steps = 10, .total_steps = 10, .decay = config::Decay::Linear, .min_ratio = 0.5}.at(
            10) == 0.5);
}

}  // namespace trainyard::optim
