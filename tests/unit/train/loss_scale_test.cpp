// Training in float16 with a scaled loss, on in-process ranks.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

#include "small_run.h"

namespace trainyard::train {
namespace {

constexpr BatchShape kRowsOfARank{2, 9};

config::Config in_float16() {
  config::Config config;
  config.parallel.param_dtype = config::Precision::Float16;
  config.optimizer.lr = 1e-2;
  return config;
}

/// Of two blocks: what stands in for a device takes its time.
test::Ran train_small(const config::Config& config, int64_t steps, int world = 2) {
  models::ModelConfig model = test::odd_model();
  model.layers = 2;
  return test::run_small(config, model, world, kRowsOfARank, steps);
}

}  // namespace

TEST_CASE("loss scale: a step that overflows changes no weight and lowers the scale, and training goes on", "[train]") {
  config::Config config = in_float16();
  config.training.loss_scale_init = 0x1p32;  // past the largest float16, and one step back, too
  config.training.loss_scale_backoff_factor = 0x1p-8;
  const int world = GENERATE(1, 2, 3);
  const test::Ran ran = train_small(config, 4, world);
  CHECK(ran.skipped == std::vector<bool>{true, true, false, false});
  CHECK(ran.loss_scales == std::vector<double>{0x1p32, 0x1p24, 0x1p16, 0x1p16});
  for (size_t step = 0; step < 4; ++step) CHECK(std::isfinite(ran.norms[step]) == !ran.skipped[step]);
  const auto weights_after = [&](int64_t steps) { return train_small(config, steps, world).weights; };
  const auto first = weights_after(1);
  CHECK((weights_after(2) == first));
  CHECK_FALSE((weights_after(3) == first));
}

TEST_CASE("loss scale: the optimizer does not count a step that was skipped, the schedule does", "[train]") {
  config::Config config = in_float16(), never = in_float16();
  config.optimizer.warmup_steps = never.optimizer.warmup_steps = 3;
  config.training.loss_scale_init = 0x1p96;
  config.training.loss_scale_backoff_factor = 0x1p-80;  // one overflow, then 65536
  const test::Ran ran = train_small(config, 6), straight = train_small(never, 6);
  CHECK(ran.skipped == std::vector<bool>{true, false, false, false, false, false});
  CHECK(ran.lrs == straight.lrs);
  // Its second step is the first of AdamW: all of its bias correction, so about the rate of learning for each weight.
  const test::Ran before = train_small(config, 1), after = train_small(config, 2);
  double moved = 0;
  for (size_t i = 0; i < after.weights.size(); ++i)
    moved = std::max(moved, std::abs(static_cast<double>(after.weights[i]) - static_cast<double>(before.weights[i])));
  CHECK(moved == Approx(ran.lrs[1]).epsilon(0.01));
}

TEST_CASE("loss scale: norm and update are those of the loss as it is, whatever the scale", "[train]") {
  config::Config plain, scaled;
  plain.training.clip_grad_norm = scaled.training.clip_grad_norm = 0.1;
  plain.training.accumulation_steps = scaled.training.accumulation_steps = 2;
  scaled.training.loss_scale = "1024";  // a power of two changes no bit of float32
  const test::Ran expected = train_small(plain, 4), ran = train_small(scaled, 4);
  CHECK(expected.loss_scales.empty());
  CHECK(ran.loss_scales == std::vector<double>(4, 1024));
  CHECK(ran.losses == expected.losses);
  CHECK(ran.norms == expected.norms);
  CHECK((ran.weights == expected.weights));
}

TEST_CASE("loss scale: small gradients that float16 loses without it are there with it", "[train]") {
  config::Config whole, scaled = in_float16(), unscaled = in_float16();
  unscaled.training.loss_scale = "0.0000152587890625";  // 2^-16: as 65536 times as many tokens would leave of each
  const auto norm = [](const config::Config& config) { return train_small(config, 1, 1).norms.front(); };
  const double expected = norm(whole);
  CHECK(norm(scaled) == Approx(expected).epsilon(1e-2));
  CHECK(norm(unscaled) < 0.9 * expected);
}

TEST_CASE("loss scale: growth after the interval, and an overflow that no scale mends names the tensor", "[train]") {
  config::Config config = in_float16();
  config.training.loss_scale_init = 256, config.training.loss_scale_growth_interval = 2;
  CHECK(train_small(config, 5).loss_scales == std::vector<double>{256, 256, 512, 512, 1024});

  for (const auto& [scale, advice] :
       {std::pair("auto", "a lower optimizer.lr"), {"1e30", "a lower training.loss_scale"}}) {
    config::Config hopeless = in_float16();
    hopeless.training.loss_scale = scale;
    hopeless.training.loss_scale_init = 1e30, hopeless.training.loss_scale_backoff_factor = 1e-31;
    CHECK_THROWS_WITH(train_small(hopeless, 5),
                      Catch::Contains("step 1: loss 5.") && Catch::Contains("gradient norm") &&
                          Catch::Contains("the first bad tensor is the gradient of model.") && Catch::Contains(advice));
  }
}

}  // namespace trainyard::train
