#include "optim/schedule.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <vector>

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

TEST_CASE("Schedule: a warm-up that is a share of the steps rounds up, as transformers has it", "[optim]") {
  const auto warmup = [](double ratio, int64_t steps) {
    config::Optimizer settings;
    settings.warmup_ratio = ratio;
    return schedule_of(settings, steps).warmup_steps;
  };
  CHECK(warmup(0.25, 12) == 3);
  CHECK(warmup(0.25, 13) == 4);
  CHECK(warmup(0.03, 1) == 1);
  CHECK(warmup(1, 7) == 7);
  CHECK(warmup(0, 7) == 0);
}

TEST_CASE("Schedule: clamped decay has the rates of Megatron's AnnealingLR", "[optim]") {
  struct Row {
    config::Decay decay;
    int64_t warmup_steps;
    double min_ratio;
    std::vector<double> rates;  ///< of get_lr() in awsome-distributed-training's train_utils.py, start_lr 1 and 10 steps
  };
  const std::vector<Row> rows{
      {config::Decay::ClampedCosine, 2, 0.1,
       {0, 0.5, 1, 0.97552825814757682, 0.90450849718747373, 0.79389262614623657, 0.65450849718747373, 0.5,
        0.34549150281252633, 0.34549150281252633}},
      {config::Decay::ClampedLinear, 2, 0.65, {0, 0.5, 1, 0.9, 0.8, 0.7, 0.65, 0.65, 0.65, 0.65}},
      {config::Decay::ClampedCosine, 0, 0.1,
       {1, 0.97552825814757682, 0.90450849718747373, 0.79389262614623657, 0.65450849718747373, 0.5, 0.34549150281252633,
        0.20610737385376349, 0.1, 0.1}},
      // Beyond half of the steps get_lr() stops rising early and then goes above start_lr. Here it ends at the peak.
      {config::Decay::ClampedLinear, 6, 0, {0, 1. / 6, 2. / 6, 3. / 6, 4. / 6, 5. / 6, 1, 1, 1, 1}},
  };
  for (const Row& row : rows) {
    const Schedule schedule{.peak = 1,
                            .warmup_steps = row.warmup_steps,
                            .total_steps = 10,
                            .decay = row.decay,
                            .min_ratio = row.min_ratio,
                            .warmup_from_zero = true};
    for (size_t step = 0; step < row.rates.size(); ++step) {
      CAPTURE(static_cast<int>(row.decay), row.warmup_steps, step);
      CHECK(schedule.at(static_cast<int64_t>(step)) == Approx(row.rates[step]));
    }
    CHECK(schedule.at(1000) == schedule.at(9));
  }
}

TEST_CASE("Schedule: one that lags has the rates of DeepSpeed's schedulers", "[optim]") {
  struct Row {
    config::Decay decay;
    config::WarmupShape shape;
    double warmup_min_ratio, min_ratio;
    std::vector<double> rates;  ///< of deepspeed/runtime/lr_schedules.py at peak 1, 10 steps, warmup_num_steps 4
  };
  using enum config::WarmupShape;
  const std::vector<Row> rows{
      {config::Decay::Constant, Logarithm, 0, 0, {0, 0, 0.5, 0.79248125036057815, 1, 1, 1, 1, 1, 1}},
      {config::Decay::Constant, Linear, 0.2, 0, {0.2, 0.2, 0.4, 0.6, 0.8, 1, 1, 1, 1, 1}},
      {config::Decay::Linear, Linear, 0, 0, {0, 0, 0.25, 0.5, 0.75, 1, 5. / 6, 4. / 6, 3. / 6, 2. / 6}},
      {config::Decay::Cosine, Linear, 0, 0.0001,
       {0, 0, 0.25, 0.5, 0.75, 0.93301940, 0.75002500, 0.50005000, 0.25007500, 0.06708060}},
  };
  for (const Row& row : rows) {
    config::Optimizer settings;
    settings.lr = 1;
    settings.warmup_steps = 4;
    settings.warmup_from_zero = true;
    settings.decay = row.decay;
    settings.warmup_shape = row.shape;
    settings.warmup_min_ratio = row.warmup_min_ratio;
    settings.min_lr_ratio = row.min_ratio;
    settings.schedule_lags = true;
    for (size_t step = 0; step < row.rates.size(); ++step) {
      CAPTURE(static_cast<int>(row.decay), static_cast<int>(row.shape), step);
      CHECK(schedule_of(settings, 10).at(static_cast<int64_t>(step)) == Approx(row.rates[step]).margin(1e-8));
    }
    settings.warmup_steps = 0;
    CHECK(schedule_of(settings, 10).warmup_steps == 2);
  }
}

TEST_CASE("Schedule: without warm-up or room for decay", "[optim]") {
  CHECK(Schedule{.peak = 1, .total_steps = 10, .decay = config::Decay::Linear}.at(0) == 1.0);
  CHECK(Schedule{.peak = 1, .warmup_steps = 10, .total_steps = 10, .decay = config::Decay::Linear, .min_ratio = 0.5}.at(
            9) == 1.0);
  CHECK(Schedule{.peak = 1, .warmup_steps = 10, .total_steps = 10, .decay = config::Decay::Linear, .min_ratio = 0.5}.at(
            10) == 0.5);
}

}  // namespace trainyard::optim
