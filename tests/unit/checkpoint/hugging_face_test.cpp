#include "checkpoint/hugging_face.h"
#include "checkpoint/convert.h"

#include <catch2/catch.hpp>
#include <fstream>

#include "base/error.h"
#include "base/files.h"
#include "ranks.h"
#include "support/support.h"

namespace trainyard::checkpoint {
namespace {

using Catch::Contains;
using nlohmann::json;
using test::TemporaryFolder;
namespace fs = std::filesystem;

/// A checkpoint of step 50 by a world of 3 that records its model's configuration and a tokenizer.
Checkpoint saved_in(const TemporaryFolder& folder) {
  write_file_atomically(folder / "tokenizer.json", "{}");
  rendezvous::MemoryStore store;
  run_ranks(3, [&](int rank) {
    Snapshot snapshot = snapshot_of(50, rank, 3);
    snapshot.state["config_json"] = R"({"model_type": "llama", "hidden_size": 4, "torch_dtype": "float32"})";
    snapshot.state["tokenizer_files"] = {(folder / "tokenizer.json").string(), (folder / "gone.json").string()};
    return Saver(options_of(folder.path(), rank, 3), store).save(snapshot).saved;
  });
  return Checkpoint(folder / "step-50");
}

int64_t wrong_values(const HuggingFaceWeights& weights, float relative) {
  int64_t wrong = 0;
  for (const Shard& each : snapshot_of(50, 0, 1).model) {
    const Tensor read = weights.read_rows(each.name, 0, each.global_shape[0]);
    for (int64_t i = 0; i < read.count(); ++i) {
      const float expected = each.local.data<float>()[i];
      wrong += std::abs(read.data<float>()[i] - expected) > std::abs(expected) * relative;
    }
  }
  return wrong;
}

void write_tensor(const fs::path& path, const std::string& name, const Shape& shape) {
  SafetensorsWriter writer(path, std::vector<SafetensorsWriter::Declared>{{name, DType::Float32, shape}});
  writer.append(Tensor::zeros(shape, DType::Float32));
  writer.finish();
}

}  // namespace

TEST_CASE("export: one file, equal values, the configuration and the tokenizer beside it", "[checkpoint]") {
  const TemporaryFolder folder;
  const Checkpoint checkpoint = saved_in(folder);
  const Exported exported = export_to_hugging_face(checkpoint, {.output = folder / "hf"});
  CHECK(exported.files == 1);
  CHECK(exported.tensors == layers().size());
  const HuggingFaceWeights weights(folder / "hf");
  CHECK(weights.names().size() == layers().size());
  CHECK(wrong_values(weights, 0) == 0);
  const auto config = json::parse(read_file(folder / "hf/config.json"));
  CHECK(config == json{{"model_type", "llama"}, {"hidden_size", 4}, {"torch_dtype", "float32"}});
  CHECK(fs::exists(folder / "hf/tokenizer.json"));
  CHECK(SafetensorsFile(folder / "hf/model.safetensors").metadata().at("format") == "pt");
  CHECK_THROWS_WITH(export_to_hugging_face(checkpoint, {.output = folder / "hf"}), Contains("not an empty folder"));
}

TEST_CASE("export: several files with an index, rounded to bfloat16 or float16", "[checkpoint]") {
  const DType dtype = GENERATE(DType::BFloat16, DType::Float16);
  const TemporaryFolder folder;
  const Exported exported =
      export_to_hugging_face(saved_in(folder), {.output = folder / "hf/", .dtype = dtype, .max_shard_bytes = 60});
  CHECK(exported.files == 2);
  const auto index = json::parse(read_file(folder / "hf/model.safetensors.index.json"));
  CHECK(index.at("metadata").at("total_size") == exported.bytes);
  CHECK(index.at("weight_map").at("model.embed_tokens.weight") == "model-00001-of-00002.safetensors");
  const HuggingFaceWeights weights(folder / "hf");
  CHECK(wrong_values(weights, dtype == DType::BFloat16 ? 1.0F / 256 : 1.0F / 2048) == 0);
  CHECK(json::parse(read_file(folder / "hf/config.json")).at("torch_dtype") == name_of(dtype));
  CHECK(weights.path_of("one.weight") == folder / "hf/model-00002-of-00002.safetensors");
}

TEST_CASE("export: a checkpoint without its configuration is refused and nothing is left", "[checkpoint]") {
  const TemporaryFolder folder;
  save_steps(folder.path(), 1, {50});
  CHECK_THROWS_WITH(export_to_hugging_face(Checkpoint(folder / "step-50"), {.output = folder / "hf"}),
                    Contains("records no config.json"));
  CHECK_FALSE(fs::exists(folder / "hf"));
  CHECK(leftovers_in(folder.path()).empty());
  const TemporaryFolder other;
  const Checkpoint checkpoint = saved_in(other);
  CHECK_THROWS_AS(export_to_hugging_face(checkpoint, {.output = other / "tokenizer.json/hf"}), InputError);
}

TEST_CASE("HuggingFaceWeights: a folder that is none, or lies, is refused by name", "[checkpoint]") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(HuggingFaceWeights(folder.path()),
                    Contains("neither model.safetensors nor model.safetensors.index.json"));
  const auto index = [&](const std::string& text) { std::ofstream(folder / "model.safetensors.index.json") << text; };
  index("{}");
  CHECK_THROWS_WITH(HuggingFaceWeights(folder.path()), Contains("no JSON object with a weight_map"));
  index(R"({"weight_map":{"w":"../../etc/passwd"}})");
  CHECK_THROWS_WITH(HuggingFaceWeights(folder.path()),
                    Contains("tensor 'w': its file '../../etc/passwd' is not in this folder"));
  index(R"({"weight_map":{"w":3}})");
  CHECK_THROWS_WITH(HuggingFaceWeights(folder.path()), Contains("tensor 'w': its file is no text"));
  index(R"({"weight_map":{"w":"a.safetensors"}})");
  CHECK_THROWS_WITH(HuggingFaceWeights(folder.path()), Contains("a.safetensors: No such file"));
  write_tensor(folder / "a.safetensors", "v", {2, 2});
  CHECK_THROWS_WITH(HuggingFaceWeights(folder.path()), Contains("tensor 'w' is not in a.safetensors"));
  index(R"({"weight_map":{"v":"a.safetensors"}})");
  const HuggingFaceWeights weights(folder.path());
  CHECK(weights.shape("v") == Shape{2, 2});
  CHECK_FALSE(weights.has("w"));
  CHECK_THROWS_WITH(weights.read_rows("v", 1, 2), Contains("tensor 'v': 2 rows from 1 on of shape [2, 2]"));
}

TEST_CASE("HuggingFaceWeights: weights of 8 bits are read, but not those that have scales beside them",
          "[checkpoint]") {
  const std::string scale = GENERATE(as<std::string>(), "weight_scale_inv", "weight_scale", "scale", "scale_weight",
                                     "weight.scale", "input_scale");
  const TemporaryFolder folder;
  {
    const SafetensorsWriter::Declared declared[] = {{"a.weight", DType::Float8E4M3, {2, 1}},
                                                    {"aa.scale", DType::Float32, {1}},
                                                    {"b.weight", DType::Float8E4M3, {2, 1}},
                                                    {"b." + scale, DType::Float32, {1}},
                                                    {"c.scale", DType::Float32, {1}}};
    SafetensorsWriter writer(folder / "model.safetensors", declared);
    for (const auto& each : declared) writer.append(Tensor::zeros(each.shape, each.dtype));
    writer.finish();
  }
  const HuggingFaceWeights weights(folder.path());
  CHECK(weights.read_rows("a.weight", 0, 2).dtype() == DType::Float32);
  CHECK_THROWS_WITH(
      weights.read_rows("b.weight", 0, 2),
      Contains("b.weight is quantized, with scales of its own in b." + scale + ", which are not read"));
}

TEST_CASE("HuggingFaceWeights: reads every reference model by rows", "[checkpoint]") {
  if (test::test_data().empty()) return test::skip("no reference data");
  for (const auto& model : fs::directory_iterator(test::test_data() / "parity")) {
    if (!model.is_directory()) continue;
    const HuggingFaceWeights weights(model.path());
    for (const std::string& name : weights.names())
      CHECK(weights.read_rows(name, 0, weights.shape(name)[0]).shape() == weights.shape(name));
  }
}

}  // namespace trainyard::checkpoint
