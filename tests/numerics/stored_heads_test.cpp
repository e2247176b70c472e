// Folders whose config.json does not tell by itself whether the head is tied (reference/stored_heads): what transformers
// computes with them, and what of their tensors nobody reads.
#include <catch2/catch.hpp>

#include <cmath>
#include <filesystem>

#include "assemble/model_config.h"
#include "assemble/sharded_model.h"
#include "assemble/stored_weights.h"
#include "base/files.h"
#include "checkpoint/open_weights.h"
#include "parity_case.h"
#include "support/captured_log.h"
#include "support/ranks.h"
#include "support/support.h"
#include "tensor/safetensors.h"

namespace trainyard::test {
namespace {

namespace fs = std::filesystem;
using Named = std::map<std::string, Tensor>;

train::ShardedModel loaded(const fs::path& folder, comm::Communicator& comm) {
  const auto config = train::model_config_of(config::Model{.init_from = folder.string()}, comm);
  train::ShardedModel sharded = train::shard_model(config, comm, {{1, comm.world()}});
  train::fill_from_weights(sharded, {folder});
  return sharded;
}

Tensor logits_of(const fs::path& folder, const data::Batch& batch, comm::Communicator& comm) {
  const train::ShardedModel sharded = loaded(folder, comm);
  return models::language_model(*sharded.model).logits(batch);
}

/// A copy of a reference folder whose weights `change` has gone over.
void copy_with(const std::string& name, const fs::path& to, const std::function<void(Named&)>& change) {
  const fs::path from = reference_folder() / name;
  fs::copy_file(from / "config.json", to / "config.json");
  const SafetensorsFile stored(from / "model.safetensors");
  Named tensors;
  for (const SafetensorsEntry& entry : stored.entries()) tensors.emplace(entry.name, stored.read(entry.name));
  change(tensors);
  std::vector<SafetensorsWriter::Declared> declared;
  for (const auto& [tensor, value] : tensors) declared.push_back({tensor, DType::Float32, value.shape()});
  SafetensorsWriter writer(to / "model.safetensors", declared);
  for (const auto& [tensor, value] : tensors) writer.append(value);
  writer.finish();
}

/// The warnings of loading it, or the error.
std::string told_of(const std::string& name, const std::function<void(Named&)>& change) {
  const TemporaryFolder folder;
  copy_with(name, folder.path(), change);
  const CapturedLog log;
  const auto alone = comm::make_in_process(1, std::chrono::seconds(10));
  try {
    static_cast<void>(loaded(folder.path(), *alone.front()));
  } catch (const std::exception& error) {
    return std::string("error: ") + error.what();
  }
  return log.text();
}

Tensor filled(const Shape& shape, float value) {
  Tensor tensor = Tensor::empty(shape, DType::Float32);
  for (float& each : tensor.values<float>()) each = value;
  return tensor;
}

}  // namespace

TEST_CASE("stored heads: logits are those of transformers, whatever config.json says of the head", "[parity]") {
  const auto name = GENERATE(as<std::string>(), "t5-v1.1-saved", "t5-v1.1-no-head", "t5-own-head", "llama-own-head");
  CAPTURE(name);
  const ParityCase parity = load_case(name);
  const Tensor expected = parity.golden.read("logits");
  for (const int world : {1, 2}) {
    const auto seen =
        run_ranks(world, [&](comm::Communicator& comm) { return logits_of(parity.folder, parity.batch(), comm); });
    CHECK(relative_l2(seen.back().values<float>(), expected.values<float>()) < 1e-5);
  }
}

TEST_CASE("stored heads: one rank's weights decide for ranks that have only config.json", "[parity]") {
  const TemporaryFolder without;
  fs::copy_file(reference_folder() / "llama-own-head/config.json", without / "config.json");
  const auto tied = run_ranks(3, [&](comm::Communicator& comm) {
    const fs::path folder = comm.rank() == 0 ? reference_folder() / "llama-own-head" : without.path();
    return train::model_config_of(config::Model{.init_from = folder.string()}, comm).tied_head;
  });
  CHECK(tied == std::vector<bool>{false, false, false});
}

TEST_CASE("stored heads: what is written again says what the weights are", "[parity]") {
  const auto name = GENERATE(as<std::string>(), "t5-v1.1-saved", "t5-v1.1-no-head", "t5-own-head", "llama-own-head");
  CAPTURE(name);
  const fs::path folder = reference_folder() / name;
  const auto weights = checkpoint::open_weights(folder);
  const auto written = nlohmann::json::parse(train::as_stored(read_file(folder / "config.json"), *weights));
  CHECK(written.at("tie_word_embeddings") == (name == "t5-v1.1-no-head"));
  if (name != "llama-own-head") CHECK(written.at("scale_decoder_outputs") == (name == "t5-own-head"));
  const auto ours = train::as_stored(models::parse_config(read_file(folder / "config.json"), folder), *weights);
  const auto again = models::parse_config(models::to_hugging_face(ours), "config.json");
  CHECK(again.tied_head == ours.tied_head);
  CHECK(again.t5.scales_output == ours.t5.scales_output);
}

TEST_CASE("unread weights: what transformers ignores is silent", "[parity]") {
  CHECK(told_of("llama-own-head", [](Named& tensors) {
          tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"];
          tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = filled({4}, 1);
        }) == "");
  CHECK(told_of("t5-v1.1-saved", [](Named& tensors) {
          const Tensor bias = tensors.at("decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight");
          tensors["decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"] = bias;
          tensors["encoder.embed_tokens.weight"] = tensors["shared.weight"];
        }) == "");
}

TEST_CASE("unread weights: what transformers passes over with a warning is a warning with its names", "[parity]") {
  const std::string told = told_of("llama-own-head", [](Named& tensors) {
    tensors["value_head.weight"] = filled({3, 3}, 1);
    tensors["model.layers.0.self_attn.q_proj.bias"] = filled({16}, 0);
    for (const char* const name : {"lm_head.bias", "model.norm.bias", "model.layers.0.self_attn.q_norm.weight"})
      tensors[name] = filled({16}, 1);
  });
  CHECK_THAT(told, Catch::Contains("lm_head.weight differs from model.embed_tokens.weight and is used"));
  CHECK_THAT(told, Catch::Contains("does not read lm_head.bias, model.layers.0.self_attn.q_norm.weight, "
                                   "model.layers.0.self_attn.q_proj.bias, model.norm.bias, value_head.weight: "));
}

TEST_CASE("unread weights: scales, an adapter and a layer more are an error with the tensor's name", "[parity]") {
  const auto added = [](const char* model, const char* tensor, const Shape& shape) {
    return told_of(model, [&](Named& tensors) { tensors[tensor] = filled(shape, 1); });
  };
  for (const char* const scale : {"scale", "scale_weight", "weight_scale", "weight_scale_inv", "input_scale"}) {
    const std::string tensor = std::string("model.layers.0.self_attn.q_proj.") + scale;
    CHECK_THAT(added("llama-own-head", tensor.c_str(), {1}),
               Catch::StartsWith("error: ") && Catch::Contains(tensor + " scales quantised weights"));
  }
  for (const char* const tensor :
       {"model.layers.0.self_attn.q_proj.lora_A.weight", "model.layers.0.mlp.up_proj.lora_B.default.weight",
        "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight", "model.layers.0.lora_magnitude_vector"})
    CHECK_THAT(added("llama-own-head", tensor, {16}),
               Catch::StartsWith("error: ") && Catch::Contains(std::string(tensor) + " is of an adapter (LoRA)"));
  const TemporaryFolder with_adapter;
  copy_with("llama-own-head", with_adapter.path(), [](Named&) {});
  write_file_atomically(with_adapter / "adapter_config.json", "{}");
  const auto alone = comm::make_in_process(1, std::chrono::seconds(10));
  CHECK_THROWS_WITH(loaded(with_adapter.path(), *alone.front()),
                    Catch::Contains("adapter_config.json: the adapter (LoRA) beside the weights is not read"));
  CHECK_THAT(added("llama-own-head", "model.layers.1.input_layernorm.weight", {16}),
             Catch::Contains("holds model.layers.1.input_layernorm.weight, but the last of these"));
  CHECK_THAT(added("t5-own-head", "decoder.embed_tokens.weight", {37, 16}),
             Catch::Contains("decoder.embed_tokens.weight differs from shared.weight"));
}

}  // namespace trainyard::test
