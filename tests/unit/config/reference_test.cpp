#include "config/reference.h"

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "config/schema.h"
#include "support/support.h"

namespace trainyard::config {
namespace {

TEST_CASE("docs/configuration.md is what the code says: trainyard config docs > docs/configuration.md", "[config]") {
  CHECK(read_file(test::in_repository("docs/configuration.md")) == documentation());
}

TEST_CASE("help and documentation tell of every key with its default", "[config]") {
  const std::string help = help_text();
  for (const Key& key : keys()) {
    CHECK_THAT(help, Catch::Contains("  --" + key.full_name() + "  (default: "));
    CHECK_FALSE(key.help.empty());
    CHECK(key.help.ends_with('.'));
  }
}

TEST_CASE("the keys of docs/interfaces.md are all there", "[config]") {
  const char* const promised[] = {"model.preset",
                                  "model.config",
                                  "model.init_from",
                                  "data.path",
                                  "data.field",
                                  "data.tokenizer",
                                  "data.tokens",
                                  "data.append_eos",
                                  "data.special_tokens",
                                  "data.seed",
                                  "training.steps",
                                  "training.epochs",
                                  "training.batch_size",
                                  "training.sequence_length",
                                  "training.accumulation_steps",
                                  "training.clip_grad_norm",
                                  "training.seed",
                                  "training.deterministic",
                                  "optimizer.lr",
                                  "optimizer.warmup_steps",
                                  "optimizer.stable_steps",
                                  "optimizer.decay",
                                  "optimizer.min_lr_ratio",
                                  "optimizer.betas",
                                  "optimizer.eps",
                                  "optimizer.weight_decay",
                                  "parallel.strategy",
                                  "parallel.shard",
                                  "parallel.replicate",
                                  "parallel.param_dtype",
                                  "parallel.reduce_dtype",
                                  "parallel.prefetch",
                                  "activation_checkpointing.mode",
                                  "activation_checkpointing.n",
                                  "activation_checkpointing.offload",
                                  "checkpoint.enabled",
                                  "checkpoint.dir",
                                  "checkpoint.interval",
                                  "checkpoint.keep",
                                  "checkpoint.resume",
                                  "checkpoint.async",
                                  "comm.backend",
                                  "comm.timeout",
                                  "rendezvous.timeout",
                                  "device.kind",
                                  "metrics.dir",
                                  "metrics.interval",
                                  "metrics.line"};
  for (const char* const name : promised) {
    CAPTURE(name);
    CHECK(find_key(name));
  }
}

TEST_CASE("the JSON schema has every key, closed sections, and the bounds that the reader has", "[config]") {
  const auto schema = nlohmann::json::parse(json_schema());
  CHECK(schema["$schema"] == "https://json-schema.org/draft/2020-12/schema");
  CHECK(schema["additionalProperties"] == false);
  const auto& properties = schema["properties"];
  for (const Key& key : keys()) CHECK(properties.at(key.section).at("properties").contains(key.name));
  for (const auto& section : properties) CHECK(section["additionalProperties"] == false);
  CHECK(properties["parallel"]["properties"]["param_dtype"]["enum"] ==
        nlohmann::json{"fp32", "float32", "bf16", "bfloat16", "fp16", "float16"});
  const auto& betas = properties["optimizer"]["properties"]["betas"];
  CHECK(betas["items"] == nlohmann::json{{"type", "number"}, {"minimum", 0.0}, {"exclusiveMaximum", 1.0}});
  CHECK(betas["minItems"] == 2);
  CHECK(properties["checkpoint"]["properties"]["keep"]["minimum"] == 1.0);
}

}  // namespace
}  // namespace trainyard::config
