#include "train/pairs.h"

#include <catch2/catch.hpp>

#include <fstream>

#include "nn/init.h"
#include "support/support.h"

namespace trainyard::train {
namespace {

models::ModelConfig tiny_t5() {
  models::ModelConfig config = models::preset("t5-small");
  config.vocab_size = 259, config.hidden_size = 16, config.intermediate_size = 20, config.layers = 1;
  config.heads = config.kv_heads = 2, config.head_dim = 6, config.t5.decoder_layers = 2, config.max_positions = 64;
  return config;
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
    CHECK_THROWS_WITH(pair_loader_of(config, *bytes, model, {}), Catch::Contains(message));
  };
  CHECK(pair_loader_of(config, *bytes, tiny_t5(), {})->sequences_per_epoch() == 3);
  fails(models::preset("qwen3-tiny"), "a qwen3 model learns from plain text");
  models::ModelConfig small = tiny_t5();
  small.vocab_size = 100;
  fails(small, "the model's vocabulary has 100");
  config.data.max_source_length = 65;
  fails(tiny_t5(), "data.max_source_length is 65, but the model takes sources of 64 tokens");
}

TEST_CASE("pairs: the asked number of sources is answered, and the scores are their mean", "[train]") {
  const test::TemporaryFolder folder;
  const auto bytes = tokenizer::load_tokenizer("bytes");
  const auto model = models::build(tiny_t5());
  nn::place_whole(*model);
  for (nn::Parameter* const parameter : model->parameters()) {
    Tensor value = parameter->value();
    nn::initial_rows(*parameter, 5, 0, parameter->shape()[0], value.values<float>());
  }
  const config::Config config = config_of(three_pairs(folder));
  const AnswersReport report = answer_pairs(models::language_model(*model), *bytes, config.data, sample_pairs(config));
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
