#include <catch2/catch.hpp>

#include "small_run.h"

using namespace trainyard;
using namespace trainyard::test;

namespace {

constexpr double kRate = 0.25, kDecay = 0.5;

std::vector<float> weights_after_a_step(double rate, double decay, config::DecayedParameters decayed) {
  config::Config config;
  config.optimizer.lr = rate;
  config.optimizer.decay = config::Decay::Constant;
  config.optimizer.weight_decay = decay;
  config.optimizer.decayed_parameters = decayed;
  return run_small(config, odd_model(), 1, {.rows = 2, .tokens = 16}, 1).weights;
}

}  // namespace

TEST_CASE("weight decay: it is for matrices, or for norms too", "[train]") {
  using enum config::DecayedParameters;
  const auto before = weights_after_a_step(1e-30, 0, All), without = weights_after_a_step(kRate, 0, All);
  const auto matrices = weights_after_a_step(kRate, kDecay, Matrices), all = weights_after_a_step(kRate, kDecay, All);
  REQUIRE(all.size() == before.size());
  int64_t spared = 0;
  for (size_t at = 0; at < all.size(); ++at) {
    const double decayed = without[at] - kRate * kDecay * before[at];
    CAPTURE(at, before[at], without[at]);
    REQUIRE(all[at] == Approx(decayed).margin(1e-6));
    if (matrices[at] == all[at]) continue;
    REQUIRE(matrices[at] == without[at]);
    ++spared;
  }
  const models::ModelConfig model = odd_model();
  CHECK(spared == model.layers * 2 * (model.hidden_size + model.head_dim) + model.hidden_size);
}
