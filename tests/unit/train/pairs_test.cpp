#include "assemble/pairs.h"

#include <catch2/catch.hpp>

#include <fstream>

#include "nn/init.h"
#include "ops/scale.h"
#include "run/answers.h"
#include "support/support.h"

namespace trainyard::train {
namespace {

models::ModelConfig tiny_t5() {
  models::ModelConfig config = models::preset("t5-small");
  config.vocab_size = 259, config.hidden_size = 16, config.intermediate_size = 20, config.layers = 1;
  config.heads = config.kv_heads = 2, config.head_dim = 6, config.t5.decoder_layers = 2, config.max_positions = 64;
  return config;
}

std::unique_ptr<models::Model> random_t5() {
  auto model = models::build(tiny_t5());
  nn::place_whole(*model);
  for (nn::Parameter* const parameter : model->parameters()) {
    Tensor value = parameter->value();
    nn::initial_rows(*parameter, 5, 0, parameter->shape()[0], value.values<float>());
  }
  return model;
}

config::Config config_of(const std::filesystem::path& path) {
  config::Config config;
  config.data.path = config.sample.path = path.string();
  config.data.source_field = "a", config.data.target_field = "b";
  config.data.max_source_length = 12, config.data.max_target_length = 5;
  config.sample.count = 2;
  return config;
}

std::filesystem::path three_pairs(const test::TemporaryFolder& folder) {
  std::ofstream(folder / "pairs.jsonl") << "{\"a\": \"a long source that is cut\", \"b\": \"one\"}\n"
                                           "{\"a\": \"two\", \"b\": \"two\"}\n{\"a\": \"three\", \"b\": \"three\"}\n";
  return folder / "pairs.jsonl";
}

}  // namespace

TEST_CASE("pairs: what does not fit data, model and tokenizer together is refused before anything starts", "[train]") {
  const test::TemporaryFolder folder;
  const auto bytes = tokenizer::load_tokenizer("bytes");
  config::Config config = config_of(three_pairs(folder));
  const auto fails = [&](const models::ModelConfig& model, const std::string& message) {
    CHECK_THROWS_WITH(pair_loader_of(config.data, {.rows = 8}, *bytes, model, {}), Catch::Contains(message));
  };
  CHECK(pair_loader_of(config.data, {.rows = 8}, *bytes, tiny_t5(), {})->sequences_per_epoch() == 3);
  fails(models::preset("qwen3-tiny"), "a qwen3 model learns from plain text");
  models::ModelConfig small = tiny_t5();
  small.vocab_size = 100;
  fails(small, "the model's vocabulary has 100");
  config.data.max_source_length = 65;
  fails(tiny_t5(), "data.max_source_length is 65, but the model takes sources of 64 tokens");
}

TEST_CASE("pairs: padding to a multiple leaves loss and gradients as they are", "[train]") {
  const test::TemporaryFolder folder;
  const auto bytes = tokenizer::load_tokenizer("bytes");
  const auto model = random_t5();
  config::Config config = config_of(three_pairs(folder));
  const auto learn = [&](int64_t multiple) {
    config.data.pad_to_multiple_of = multiple;
    const data::Batch batch = pair_loader_of(config.data, {.rows = 8}, *bytes, tiny_t5(), {})->next();
    CHECK(batch.input_ids.size(1) == (multiple == 1 ? 12 : 64));
    CHECK(batch.targets.size(1) == (multiple == 1 ? 5 : 64));
    std::vector<double> numbers;
    for (nn::Parameter* const parameter : model->parameters()) {
      Tensor gradient = parameter->gradient();
      ops::set_zero(gradient);
    }
    nn::Tape tape;
    numbers.push_back(model->loss(batch, {.tape = &tape}).read().loss_sum);
    tape.backward();
    for (nn::Parameter* const parameter : model->parameters())
      for (const float value : parameter->gradient().values<float>()) numbers.push_back(static_cast<double>(value));
    return numbers;
  };
  const std::vector<double> as_they_are = learn(1), padded = learn(64);
  REQUIRE(padded.size() == as_they_are.size());
  double most = 0, worst = 0;
  for (size_t i = 0; i < padded.size(); ++i) {
    most = std::max(most, std::abs(as_they_are[i]));
    worst = std::max(worst, std::abs(padded[i] - as_they_are[i]));
  }
  CHECK(most > 1);
  CHECK(worst < 1e-6 * most);  // float32 sums, in other blocks
}

TEST_CASE("pairs: the asked number of sources is answered, and the scores are their mean", "[train]") {
  const test::TemporaryFolder folder;
  const auto bytes = tokenizer::load_tokenizer("bytes");
  const auto model = random_t5();
  const config::Config config = config_of(three_pairs(folder));
  const auto alone = comm::make_in_process(1, std::chrono::seconds(10));
  const AnswersReport report =
      answer_pairs(models::language_model(*model), *bytes, {config.data, {256}}, sample_pairs(config),
                   *alone.front());
  REQUIRE(report.all.size() == 2);
  double rouge1 = 0;
  for (const Answered& each : report.all) {
    CHECK(each.answer.size() <= 5);
    rouge1 += metrics::rouge(each.answer, each.reference, metrics::Words::Stems).rouge1 / 2;
  }
  CHECK(report.mean.rouge1 == Approx(rouge1));
  CHECK(report.all[1].reference == "two");
  CHECK(format_answers(report, 1).find("over 2 pairs\nsource:    a long source") != std::string::npos);
}

}  // namespace trainyard::train
