#include "assemble/model_config.h"

#include <catch2/catch.hpp>

#include <fstream>

#include "support/support.h"

namespace trainyard::train {
namespace {

/// The model of a config.json with a padding row and a dropout, where the configuration gives the sizes `chosen`.
models::ModelConfig with_sizes(const std::string& pad_token_id, const config::Model& chosen) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "config.json";
  std::ofstream(path) << R"({"model_type": "llama", "vocab_size": 40, "hidden_size": 16, "intermediate_size": 24,
      "num_hidden_layers": 1, "num_attention_heads": 2, "attention_dropout": 0.1, "pad_token_id": )"
                      << pad_token_id << "}";
  config::Model model = chosen;
  model.config = path.string();
  return model_config_of(model);
}

}  // namespace

TEST_CASE("model config: sizes of the configuration leave what else config.json says of training") {
  const models::ModelConfig larger = with_sizes("3", {.layers = 2, .vocab_size = 50});
  CHECK(larger.layers == 2);
  CHECK(larger.pad_token_id == 3);
  CHECK_THROWS_WITH(models::for_training(larger), Catch::Contains("config.json: attention_dropout is 0.1"));
  CHECK(with_sizes("-1", {.vocab_size = 50}).pad_token_id == -1);
  CHECK_THROWS_WITH(with_sizes("30", {.vocab_size = 20}),
                    "the model with the sizes of the configuration: pad_token_id is 30; a row from 0 to 19 is needed, "
                    "or from -1 to -20, counted from the end");
}

}  // namespace trainyard::train
