#include "run/generate.h"

#include <catch2/catch.hpp>

#include <cmath>

#include "base/error.h"
#include "nn/init.h"
#include "support/ranks.h"
#include "unit/train/tiny_model.h"

namespace trainyard::train {
namespace {

Tensor logits_of(std::vector<float> values) {
  return Tensor::from<float>(values, {static_cast<int64_t>(values.size())});
}

std::vector<double> frequencies(const Tensor& logits, double temperature, double top_p) {
  std::mt19937_64 random(1);
  std::vector<double> counts(static_cast<size_t>(logits.count()));
  for (int i = 0; i < 20000; ++i) counts[static_cast<size_t>(draw(logits, temperature, top_p, random))] += 1.0 / 20000;
  return counts;
}

std::unique_ptr<models::Model> small_model() {
  auto model = models::build(test::tiny_model());
  nn::place_whole(*model);
  for (nn::Parameter* const parameter : model->parameters()) {
    Tensor value = parameter->value();
    nn::initial_rows(*parameter, 5, 0, parameter->shape()[0], value.values<float>());
  }
  return model;
}

}  // namespace

TEST_CASE("draw: temperature 0 takes the largest, first of equals", "[train]") {
  std::mt19937_64 random(1);
  CHECK(draw(logits_of({1, 3, 3, 2}), 0, 1, random) == 1);
}

TEST_CASE("draw: frequencies follow softmax of logits over temperature", "[train]") {
  const double temperature = GENERATE(0.5, 1.0, 2.0);
  const auto seen = frequencies(logits_of({0, 1, 2}), temperature, 1);
  const double a = std::exp(1 / temperature), b = std::exp(2 / temperature), sum = 1 + a + b;
  CHECK(seen[0] == Approx(1 / sum).margin(0.015));  // four standard errors of 20,000 draws
  CHECK(seen[1] == Approx(a / sum).margin(0.015));
  CHECK(seen[2] == Approx(b / sum).margin(0.015));
}

TEST_CASE("draw: top_p keeps the likeliest tokens that reach it, and at least one", "[train]") {
  const Tensor logits = logits_of({std::log(0.5F), std::log(0.3F), std::log(0.2F)});
  CHECK(frequencies(logits, 1, 0.7)[2] == 0);
  CHECK(frequencies(logits, 1, 0.7)[1] == Approx(0.375).margin(0.015));
  CHECK(frequencies(logits, 1, 0.0)[0] == Approx(1));
}

TEST_CASE("generate: equal seeds give equal texts, ids stay in the tokenizer's, and any stop ends", "[train]") {
  const auto built = small_model();
  models::LanguageModel& model = models::language_model(*built);
  const std::vector<int32_t> prompt{1, 2, 3};
  Sampling sampling{.max_new_tokens = 10, .temperature = 5, .top_p = 1, .seed = 3, .vocab_size = 6};
  const auto alone = comm::make_in_process(1, std::chrono::seconds(10));
  comm::Communicator& world = *alone.front();
  const auto first = generate(model, prompt, sampling, world);
  CHECK(first.size() == 10);
  CHECK(first == generate(model, prompt, sampling, world));
  CHECK(*std::ranges::max_element(first) < 6);
  sampling.stops = {7, first[4]};
  CHECK(generate(model, prompt, sampling, world).size() <= 4);
}

TEST_CASE("generate: rank 0 draws, and ranks whose own logits and seeds would give other tokens get its", "[train]") {
  const auto made = test::run_ranks(3, [](comm::Communicator& world) {
    const auto built = small_model();
    const Sampling own{.max_new_tokens = 10, .temperature = 5, .top_p = 1, .seed = static_cast<uint64_t>(world.rank())};
    return generate(models::language_model(*built), std::vector<int32_t>{1, 2, 3}, own, world);
  });
  CHECK(made[0].size() == 10);
  CHECK(made[1] == made[0]);
  CHECK(made[2] == made[0]);
}

TEST_CASE("generate: refuses what the model has no place for", "[train]") {
  const auto built = small_model();
  models::LanguageModel& model = models::language_model(*built);
  const auto alone = comm::make_in_process(1, std::chrono::seconds(10));
  comm::Communicator& world = *alone.front();
  CHECK_THROWS_WITH(generate(model, {}, {}, world), Catch::Contains("the prompt is empty"));
  CHECK_THROWS_WITH(generate(model, std::vector<int32_t>{19}, {.max_new_tokens = 1}, world),
                    Catch::Contains("token id 19"));
  CHECK_THROWS_WITH(generate(model, std::vector<int32_t>{1}, {.max_new_tokens = 16}, world),
                    Catch::Contains("16 positions"));
}

}  // namespace trainyard::train
